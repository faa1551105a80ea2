package guests

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"guests/rmqemu"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/consumer"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const topicOfShop = "ShopOrders"

// Tests that start the cluster which they break: `go test -run UnderFire ./...`, and nothing else has to run.

func TestUnderFireADeadMasterLosesNoOrder(t *testing.T) {
	t.Parallel()
	cluster := rmqemu.Start(t, "shop")
	shop := newShop(t, cluster)
	brokers := map[string]bool{}
	for range 30 {
		brokers[shop.mustSend(t)] = true
	}
	if len(brokers) != 2 {
		t.Fatalf("orders went to %v", brokers)
	}

	cluster.Kill("broker-b")
	for range 30 {
		if broker := shop.mustSend(t); broker == "broker-b" {
			t.Fatal("a dead broker has taken an order")
		}
	}

	cluster.Start("broker-b")
	await(t, "all orders are consumed, those of broker-b included", func() bool { return shop.missing() == 0 })
}

func TestUnderFireAReadOnlyTopicRefusesOrdersAndGivesOutThoseThatItHas(t *testing.T) {
	t.Parallel()
	cluster := rmqemu.Start(t, "shop")
	shop := newShop(t, cluster)
	for range 10 {
		shop.mustSend(t)
	}

	cluster.ReadOnly(topicOfShop)
	await(t, "a send is refused", func() bool { _, err := shop.send(); return err != nil })
	await(t, "what was accepted is consumed", func() bool { return shop.missing() == 0 })

	cluster.Heal()
	await(t, "orders are accepted again", func() bool { _, err := shop.send(); return err == nil })
}

func TestUnderFireWhatCannotBeSaidIsRefusedInOneLine(t *testing.T) {
	t.Parallel()
	cluster := rmqemu.Start(t, "guests")
	if _, err := cluster.Try("kill", "broker-x"); err == nil || !strings.Contains(err.Error(), "broker-x") {
		t.Fatalf("refused: %v", err)
	}
}

// onlineShop sends orders, and consumes them.
type onlineShop struct {
	producer rocketmq.Producer
	sent     []string
	lock     sync.Mutex
	consumed map[string]bool
}

func newShop(t *testing.T, cluster *rmqemu.Cluster) *onlineShop {
	t.Helper()
	nameservers := cluster.Nameservers("shop")
	shop := &onlineShop{consumed: map[string]bool{}}
	var err error
	shop.producer, err = rocketmq.NewProducer(
		producer.WithNameServer(nameservers), producer.WithGroupName("go-shop"),
		producer.WithInstanceName(t.Name()), producer.WithRetry(5)) // one name, one cluster: two of them share no client
	must(t, err)
	must(t, shop.producer.Start())
	t.Cleanup(func() { shop.producer.Shutdown() })
	billing, err := rocketmq.NewPushConsumer(
		consumer.WithNameServer(nameservers), consumer.WithGroupName("go-billing"), consumer.WithInstance(t.Name()),
		consumer.WithConsumeFromWhere(consumer.ConsumeFromFirstOffset))
	must(t, err)
	must(t, billing.Subscribe(topicOfShop, consumer.MessageSelector{}, shop.consume))
	must(t, billing.Start())
	t.Cleanup(func() { billing.Shutdown() })
	return shop
}

func (s *onlineShop) consume(_ context.Context, messages ...*primitive.MessageExt) (consumer.ConsumeResult, error) {
	s.lock.Lock()
	defer s.lock.Unlock()
	for _, message := range messages {
		s.consumed[string(message.Body)] = true
	}
	return consumer.ConsumeSuccess, nil
}

// send returns the broker that has taken an order.
func (s *onlineShop) send() (string, error) {
	order := fmt.Sprintf("order-%03d", len(s.sent))
	result, err := s.producer.SendSync(context.Background(), primitive.NewMessage(topicOfShop, []byte(order)))
	if err != nil {
		return "", err
	}
	s.sent = append(s.sent, order)
	return result.MessageQueue.BrokerName, nil
}

func (s *onlineShop) mustSend(t *testing.T) string {
	t.Helper()
	broker, err := s.send()
	must(t, err)
	return broker
}

func (s *onlineShop) missing() int {
	s.lock.Lock()
	defer s.lock.Unlock()
	missing := 0
	for _, order := range s.sent {
		if !s.consumed[order] {
			missing++
		}
	}
	return missing
}

func await(t *testing.T, what string, isSo func() bool) {
	t.Helper()
	for deadline := time.Now().Add(90 * time.Second); !isSo(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("not within 90 s: %s", what)
		}
	}
}
