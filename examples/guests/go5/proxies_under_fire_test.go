// Tests with the official Go client of RocketMQ 5, which start the cluster that they break:
//
//	go -C examples/guests/go5 test ./...
package guests

import (
	"context"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"guests/rmqemu"

	rmq "github.com/apache/rocketmq-clients/golang/v5"
	"github.com/apache/rocketmq-clients/golang/v5/credentials"
)

const (
	orders             = "Orders"
	inOrder            = "OrdersInOrder"
	later              = "LaterOrders"
	paid               = "PaidOrders"
	perStep            = 20
	delay              = 5 * time.Second
	invisible          = 30 * time.Second
	acknowledgedWithin = 60 * time.Second
	consumedWithin     = 120 * time.Second
)

func TestMain(m *testing.M) {
	os.Setenv("mq.consoleAppender.enabled", "true") // else it writes its log to the home directory
	os.Setenv("rocketmq.client.logLevel", "error")
	rmq.ResetLogger()
	os.Exit(m.Run())
}

func TestEveryOrderIsConsumedAlthoughAMasterAProxyAndABrokerFail(t *testing.T) {
	cluster := rmqemu.Start(t, "../proxies.toml")
	shop := newShop(t, cluster.Endpoints())

	first := message(inOrder, "fifo")
	first.SetMessageGroup("customer-1")
	shop.send(t, first)
	due := time.Now().Add(delay)
	delayed := message(later, "delayed")
	delayed.SetDelayTimestamp(due)
	shop.send(t, delayed)
	shop.recall(t, due)
	shop.sendPaid(t, "paid")
	shop.sendOrders(t)

	cluster.Kill("broker-b")
	shop.sendOrders(t)
	cluster.Start("broker-b")
	shop.sendOrders(t)

	cluster.Kill("proxy-1")
	shop.sendOrders(t)
	cluster.Start("proxy-1")
	shop.sendOrders(t)

	cluster.Suspend("broker-a")
	shop.sendOrders(t)
	cluster.Resume("broker-a")
	shop.sendOrders(t)

	shop.awaitAll(t)
	if at := shop.consumedAt("delayed"); at.Before(due.Truncate(time.Millisecond)) {
		t.Fatalf("the delayed order came %v early", due.Sub(at))
	}
	if !shop.consumedAt("recalled").IsZero() {
		t.Fatal("the recalled order came")
	}
	if received := receive(t, cluster.Endpoints()); received != "fifo" {
		t.Fatalf("the simple consumer received %q", received)
	}
}

// onlineShop sends orders, and consumes them.
type onlineShop struct {
	producer     rmq.Producer
	acknowledged []string
	lock         sync.Mutex
	consumed     map[string]time.Time
}

func newShop(t *testing.T, endpoints string) *onlineShop {
	t.Helper()
	shop := &onlineShop{consumed: map[string]time.Time{}}
	config := &rmq.Config{Endpoint: endpoints, ConsumerGroup: "go-billing", Credentials: &credentials.SessionCredentials{}}
	var err error
	shop.producer, err = rmq.NewProducer(config, rmq.WithTopics(orders, inOrder, later, paid),
		rmq.WithTransactionChecker(&rmq.TransactionChecker{
			Check: func(*rmq.MessageView) rmq.TransactionResolution { return rmq.COMMIT },
		}))
	must(t, err)
	must(t, shop.producer.Start())
	t.Cleanup(func() { shop.producer.GracefulStop() })
	billing, err := rmq.NewPushConsumer(config, rmq.WithPushAwaitDuration(5*time.Second),
		rmq.WithPushSubscriptionExpressions(map[string]*rmq.FilterExpression{
			orders: rmq.SUB_ALL, inOrder: rmq.SUB_ALL, later: rmq.SUB_ALL, paid: rmq.SUB_ALL,
		}),
		rmq.WithPushMessageListener(&rmq.FuncMessageListener{Consume: shop.consume}))
	must(t, err)
	must(t, billing.Start())
	t.Cleanup(func() { billing.GracefulStop() })
	return shop
}

func (s *onlineShop) consume(message *rmq.MessageView) rmq.ConsumerResult {
	s.lock.Lock()
	defer s.lock.Unlock()
	order := string(message.GetBody())
	if _, isThere := s.consumed[order]; !isThere {
		s.consumed[order] = time.Now()
	}
	return rmq.SUCCESS
}

func (s *onlineShop) sendOrders(t *testing.T) {
	t.Helper()
	for range perStep {
		s.send(t, message(orders, fmt.Sprintf("order-%03d", len(s.acknowledged))))
	}
}

// send sends a message until it is acknowledged.
func (s *onlineShop) send(t *testing.T, message *rmq.Message) {
	t.Helper()
	for deadline := time.Now().Add(acknowledgedWithin); ; time.Sleep(500 * time.Millisecond) {
		_, err := s.producer.Send(context.Background(), message)
		if err == nil {
			s.acknowledged = append(s.acknowledged, string(message.Body))
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

func (s *onlineShop) sendPaid(t *testing.T, order string) {
	t.Helper()
	transaction := s.producer.BeginTransaction()
	_, err := s.producer.SendWithTransaction(context.Background(), message(paid, order), transaction)
	must(t, err)
	must(t, transaction.Commit())
	s.acknowledged = append(s.acknowledged, order)
}

// recall sends a delayed message, and takes it back.
func (s *onlineShop) recall(t *testing.T, due time.Time) {
	t.Helper()
	delayed := message(later, "recalled")
	delayed.SetDelayTimestamp(due)
	receipts, err := s.producer.Send(context.Background(), delayed)
	must(t, err)
	_, err = s.producer.Recall(context.Background(), later, receipts[0].RecallHandle)
	must(t, err)
}

// receive returns the first message in order, as a simple consumer receives and acknowledges it.
func receive(t *testing.T, endpoints string) string {
	t.Helper()
	config := &rmq.Config{Endpoint: endpoints, ConsumerGroup: "go-audit", Credentials: &credentials.SessionCredentials{}}
	audit, err := rmq.NewSimpleConsumer(config, rmq.WithSimpleAwaitDuration(5*time.Second),
		rmq.WithSimpleSubscriptionExpressions(map[string]*rmq.FilterExpression{inOrder: rmq.SUB_ALL}))
	must(t, err)
	must(t, audit.Start())
	defer audit.GracefulStop()
	for deadline := time.Now().Add(consumedWithin); time.Now().Before(deadline); {
		messages, err := audit.Receive(context.Background(), 16, invisible)
		if err != nil { // that there is no message is an error
			continue
		}
		for _, received := range messages {
			must(t, audit.Ack(context.Background(), received))
			return string(received.GetBody())
		}
	}
	return ""
}

func (s *onlineShop) awaitAll(t *testing.T) {
	t.Helper()
	for deadline := time.Now().Add(consumedWithin); ; time.Sleep(100 * time.Millisecond) {
		missing := s.missing()
		if len(missing) == 0 {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("%d of %d orders were not consumed: %v", len(missing), len(s.acknowledged), missing)
		}
	}
}

func (s *onlineShop) missing() []string {
	s.lock.Lock()
	defer s.lock.Unlock()
	var missing []string
	for _, order := range s.acknowledged {
		if _, isThere := s.consumed[order]; !isThere {
			missing = append(missing, order)
		}
	}
	return missing
}

func (s *onlineShop) consumedAt(order string) time.Time {
	s.lock.Lock()
	defer s.lock.Unlock()
	return s.consumed[order]
}

func message(topic, order string) *rmq.Message {
	return &rmq.Message{Topic: topic, Body: []byte(order)}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
