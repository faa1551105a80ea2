// An ordinary application under test:
//
//	rmqemu up examples/guests.toml --exec go -C examples/guests/go test ./...
package guests

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const (
	topic  = "GoOrders"
	orders = 100
)

func TestEveryOrderIsSentAndConsumedAlthoughAMasterDiesAndComesBack(t *testing.T) {
	needsCluster(t)
	nameservers := strings.Split(os.Getenv("NAMESRV_ADDR"), ";")
	shop, err := rocketmq.NewProducer(
		producer.WithNameServer(nameservers), producer.WithGroupName("go-shop"), producer.WithRetry(5))
	must(t, err)
	must(t, shop.Start())
	defer shop.Shutdown()
	send(t, shop, 0, 30)

	var lock sync.Mutex
	consumed := map[string]bool{}
	billing, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer(nameservers), consumer.WithGroupName("go-billing"),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	must(t, err)
	must(t, billing.Subscribe(topic, consumer.MessageSelector{},
		func(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
			lock.Lock()
			defer lock.Unlock()
			for _, message := range messages {
				consumed[string(message.Body)] = true
			}
			return consumer.ConsumeSuccess, nil
		}))
	must(t, billing.Start())
	defer billing.Shutdown()

	ctl(t, "kill", "broker-b")
	send(t, shop, 30, 70)
	ctl(t, "start", "broker-b")
	send(t, shop, 70, orders)

	count := 0
	for tenths := 0; count < orders && tenths < 900; tenths++ {
		time.Sleep(100 * time.Millisecond)
		lock.Lock()
		count = len(consumed)
		lock.Unlock()
	}
	if count != orders {
		t.Fatalf("%d of %d orders were consumed", count, orders)
	}
}

// needsCluster skips a test that breaks the cluster of `rmqemu up --exec`, where there is none.
func needsCluster(t *testing.T) {
	t.Helper()
	if os.Getenv("NAMESRV_ADDR") == "" {
		t.Skip("beside a cluster only: rmqemu up --exec go test ./...")
	}
}

func send(t *testing.T, shop rocketmq.Producer, from, to int) {
	t.Helper()
	for i := from; i < to; i++ {
		result, err := shop.SendSync(context.Background(), primitive.NewMessage(topic, fmt.Appendf(nil, "order-%03d", i)))
		must(t, err)
		if result.Status != primitive.SendOK {
			t.Fatalf("order %d: %v", i, result)
		}
	}
}

// ctl breaks the cluster, or heals it, as one would by hand.
func ctl(t *testing.T, verb, node string) {
	t.Helper()
	must(t, exec.Command("rmqemu", "ctl", "--run", os.Getenv("RMQEMU_RUN"), verb, node).Run())
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
