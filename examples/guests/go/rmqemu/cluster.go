// Package rmqemu gives tests an emulated RocketMQ cluster that they can break.
//
//	cluster := rmqemu.Start(t, "guests", "shop")
//	shop, err := rocketmq.NewProducer(producer.WithNameServer(cluster.Nameservers("shop")))
//	cluster.Kill("broker-b")
package rmqemu

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

const (
	address    = "NAMESRV_ADDR"
	endpoints  = "RMQEMU_ENDPOINTS"
	run        = "RMQEMU_RUN"
	ready      = "ready"
	endsWithin = 20 * time.Second
	// What runs beside the cluster, which ends with it: cat ends when its input does, and that is when the test
	// closes it or its process is gone, be it by SIGKILL.
	beside = "env | grep -e '^" + address + "' -e '^" + endpoints + "' -e '^" + run + "='; echo " + ready + "; exec cat"
)

var notInVariables = regexp.MustCompile("[^A-Za-z0-9]")

// A Cluster is a process `rmqemu up`, which ends with the test.
type Cluster struct {
	t    testing.TB
	told map[string]string
}

// Start starts a cluster, and returns when its nodes agree. The scenario is a file, or the name of one of the package
// (`rmqemu examples`); guests are names of programs that will have an address of their own, for faults of their links.
// The test fails with the lines of rmqemu if that cannot be done.
func Start(t testing.TB, scenario string, guests ...string) *Cluster {
	t.Helper()
	runs, err := os.MkdirTemp("", "rmqemu-") // shorter than t.TempDir(), so that the socket's path fits
	if err != nil {
		t.Fatal(err)
	}
	words := []string{"up", scenario, "--runs", runs}
	for _, guest := range guests {
		words = append(words, "--guest", guest)
	}
	process := exec.Command("rmqemu", append(words, "--exec", "sh", "-c", beside)...)
	process.Env = withoutCluster(os.Environ())
	input, err := process.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	output, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	process.Stdout, process.Stderr = write, write
	err = process.Start()
	write.Close()
	if err != nil {
		t.Fatalf("rmqemu cannot be run; is it on the PATH? pip install rocketmq-emulator (%v)", err)
	}
	t.Cleanup(func() { end(t, process, input, runs) })
	cluster := &Cluster{t, untilReady(t, output)}
	cluster.Say("until", "agree", "within", "60s")
	return cluster
}

// withoutCluster leaves out the addresses of a cluster around this one.
func withoutCluster(variables []string) []string {
	var kept []string
	for _, variable := range variables {
		if !strings.HasPrefix(variable, address) && !strings.HasPrefix(variable, endpoints) {
			kept = append(kept, variable)
		}
	}
	return kept
}

func untilReady(t testing.TB, output io.Reader) map[string]string {
	t.Helper()
	told := map[string]string{}
	var lines []string
	for scanner := bufio.NewScanner(output); scanner.Scan(); {
		if scanner.Text() == ready {
			return told
		}
		lines = append(lines, scanner.Text())
		name, value, _ := strings.Cut(scanner.Text(), "=")
		told[name] = value
	}
	t.Fatalf("rmqemu did not start:\n%s", strings.Join(lines, "\n"))
	return nil
}

// end closes the input of the cluster, so faults heal, the trace is written, and no process is left.
func end(t testing.TB, process *exec.Cmd, input io.Closer, runs string) {
	input.Close()
	late := time.AfterFunc(endsWithin, func() { process.Process.Kill() })
	process.Wait()
	late.Stop()
	left, _ := filepath.Glob(filepath.Join(runs, "*"))
	if !t.Failed() || len(left) == 0 {
		os.RemoveAll(runs)
		return
	}
	for _, run := range left {
		t.Logf("what happened: rmqemu analyze %s", run)
	}
}

// Nameservers are the addresses for RocketMQ's clients: of a program, or, without a name, of the first named one.
func (c *Cluster) Nameservers(guest ...string) []string {
	return strings.Split(c.told[variable(address, guest)], ";")
}

// Endpoints are the proxies' addresses for clients of RocketMQ 5, as one text: of a program, or of the first named one.
func (c *Cluster) Endpoints(guest ...string) string {
	return c.told[variable(endpoints, guest)]
}

func variable(kind string, guest []string) string {
	if len(guest) == 0 {
		return kind
	}
	return kind + "_" + strings.ToUpper(notInVariables.ReplaceAllString(guest[0], "_"))
}

// Kill ends a process as SIGKILL does.
func (c *Cluster) Kill(node string) { c.t.Helper(); c.Say("kill", node) }

// Start begins a new process with what the disk has.
func (c *Cluster) Start(node string) { c.t.Helper(); c.Say("start", node) }

// Suspend stops a process as SIGSTOP does.
func (c *Cluster) Suspend(node string) { c.t.Helper(); c.Say("suspend", node) }

// Resume lets a suspended process run on.
func (c *Cluster) Resume(node string) { c.t.Helper(); c.Say("resume", node) }

// Cut lets no frame pass between two nodes.
func (c *Cluster) Cut(one, other string) { c.t.Helper(); c.Say("cut", one, other) }

// ReadOnly makes a topic read only, on all brokers.
func (c *Cluster) ReadOnly(topic string) {
	c.t.Helper()
	c.Say("permission", "brokers", "4", "topic", topic)
}

// Heal ends all faults.
func (c *Cluster) Heal() { c.t.Helper(); c.Say("heal", "all") }

// Say says any verb (`rmqemu verbs`), and returns the lines of its output; the test fails if the verb is refused.
func (c *Cluster) Say(words ...string) []string {
	c.t.Helper()
	lines, err := c.Try(words...)
	if err != nil {
		c.t.Fatal(err)
	}
	return lines
}

// Try says any verb, and returns the lines of its output, or why it was refused.
func (c *Cluster) Try(words ...string) ([]string, error) {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = "'" + strings.ReplaceAll(word, "'", `'"'"'`) + "'"
	}
	lines, err := ask(filepath.Join(c.told[run], "ctl.sock"), strings.Join(quoted, " "))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", strings.Join(words, " "), err)
	}
	return lines, nil
}
