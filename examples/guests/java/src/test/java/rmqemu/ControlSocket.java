package rmqemu;

import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.EOFException;
import java.io.IOException;
import java.net.UnixDomainSocketAddress;
import java.nio.ByteBuffer;
import java.nio.channels.Channels;
import java.nio.channels.SocketChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;

/**
 * Says verbs to a running cluster. A request is a length of four bytes and a msgpack map {"line": "kill broker-a"}, an
 * answer the same with {"ok": true, "lines": [...]}.
 */
final class ControlSocket {
    private static final int MAP_OF_ONE = 0x81;
    private static final int SHORT_TEXT = 0xa0;
    private static final int TEXT_16 = 0xda;

    private final Path path;

    ControlSocket(Path path) {
        this.path = path;
    }

    /**
     * Say a verb, and wait for its output.
     *
     * @throws ClusterException it was refused, or no cluster listens; the text says why.
     */
    List<String> ask(String line) {
        Answer answer;
        try (SocketChannel channel = SocketChannel.open(UnixDomainSocketAddress.of(path))) {
            byte[] request = request(line);
            DataOutputStream out = new DataOutputStream(Channels.newOutputStream(channel));
            out.writeInt(request.length);
            out.write(request);
            DataInputStream in = new DataInputStream(Channels.newInputStream(channel));
            byte[] content = in.readNBytes(in.readInt());
            answer = Answer.of(ByteBuffer.wrap(content));
        } catch (EOFException error) {
            throw new ClusterException(line + ": the cluster ended before it answered");
        } catch (IOException error) {
            throw new ClusterException(path + ": " + error.getMessage() + "; does the cluster run?");
        }
        if (!answer.ok) {
            throw new ClusterException(line + ": " + String.join(" ", answer.lines));
        }
        return answer.lines;
    }

    private static byte[] request(String line) {
        byte[] text = line.getBytes(StandardCharsets.UTF_8);
        if (text.length > 0xffff) {
            throw new ClusterException("a line has 65,535 bytes at most");
        }
        byte[] key = "line".getBytes(StandardCharsets.US_ASCII);
        return ByteBuffer.allocate(5 + key.length + text.length)
            .put((byte) MAP_OF_ONE).put((byte) (SHORT_TEXT | key.length)).put(key)
            .put((byte) TEXT_16).putShort((short) text.length).put(text)
            .array();
    }

    private record Answer(boolean ok, List<String> lines) {
        /** Read what msgpack writes of this one map; nothing else comes over the socket. */
        static Answer of(ByteBuffer packed) {
            boolean ok = false;
            List<String> lines = new ArrayList<>();
            for (int left = packed.get() & 0x0f; left > 0; left--) {
                if (text(packed).equals("ok")) {
                    ok = (packed.get() & 0xff) == 0xc3;
                } else {
                    for (int more = count(packed, 0x90, 0xdb); more > 0; more--) {
                        lines.add(text(packed));
                    }
                }
            }
            return new Answer(ok, List.copyOf(lines));
        }

        private static String text(ByteBuffer packed) {
            byte[] bytes = new byte[count(packed, 0xa0, 0xd8)];
            packed.get(bytes);
            return new String(bytes, StandardCharsets.UTF_8);
        }

        /** How many bytes, or elements: in the first byte, or in the one, two or four behind it. */
        private static int count(ByteBuffer packed, int fixed, int sized) {
            int first = packed.get() & 0xff;
            return switch (first - sized) {
                case 1 -> packed.get() & 0xff;
                case 2 -> packed.getShort() & 0xffff;
                case 3 -> packed.getInt();
                default -> first - fixed;
            };
        }
    }
}
