package rmqemu

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
)

// ask says a verb to a running cluster. A request is a length of four bytes and a msgpack map
// {"line": "kill broker-a"}, an answer the same with {"ok": true, "lines": [...]}.
func ask(path, line string) ([]string, error) {
	if len(line) > 0xffff {
		return nil, errors.New("a line has 65,535 bytes at most")
	}
	connection, err := net.Dial("unix", path)
	if err != nil {
		return nil, fmt.Errorf("%w; does the cluster run?", err)
	}
	defer connection.Close()
	request := append([]byte{0x81, 0xa0 | 4}, "line"...)
	request = binary.BigEndian.AppendUint16(append(request, 0xda), uint16(len(line)))
	request = append(request, line...)
	framed := binary.BigEndian.AppendUint32(nil, uint32(len(request)))
	if _, err := connection.Write(append(framed, request...)); err != nil {
		return nil, err
	}
	var length uint32
	if err := binary.Read(connection, binary.BigEndian, &length); err != nil {
		return nil, fmt.Errorf("the cluster ended before it answered: %w", err)
	}
	content := make([]byte, length)
	if _, err := io.ReadFull(connection, content); err != nil {
		return nil, fmt.Errorf("the cluster ended before it answered: %w", err)
	}
	ok, lines := (&packed{content}).answer()
	if !ok {
		return nil, errors.New(strings.Join(lines, " "))
	}
	return lines, nil
}

// packed reads what msgpack writes of an answer; nothing else comes over the socket.
type packed struct{ left []byte }

func (p *packed) answer() (ok bool, lines []string) {
	for entries := p.take(1)[0] & 0x0f; entries > 0; entries-- {
		if p.text() == "ok" {
			ok = p.take(1)[0] == 0xc3
			continue
		}
		for more := p.count(0x90, 0xdb); more > 0; more-- {
			lines = append(lines, p.text())
		}
	}
	return ok, lines
}

func (p *packed) text() string { return string(p.take(p.count(0xa0, 0xd8))) }

// count is how many bytes, or elements: in the first byte, or in the one, two or four behind it.
func (p *packed) count(fixed, sized int) int {
	first := int(p.take(1)[0])
	switch first - sized {
	case 1:
		return int(p.take(1)[0])
	case 2:
		return int(binary.BigEndian.Uint16(p.take(2)))
	case 3:
		return int(binary.BigEndian.Uint32(p.take(4)))
	}
	return first - fixed
}

func (p *packed) take(size int) []byte {
	taken := p.left[:size]
	p.left = p.left[size:]
	return taken
}
