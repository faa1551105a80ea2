package guests

import (
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/apache/rocketmq-client-go/v2"
	"github.com/apache/rocketmq-client-go/v2/primitive"
	"github.com/apache/rocketmq-client-go/v2/producer"
)

const archive = "GoArchive"

func TestATopicThatMayOnlyBeReadTakesMessagesAgainWhenItsPermissionIsBack(t *testing.T) {
	needsCluster(t)
	shop, err := rocketmq.NewProducer(
		producer.WithNameServer(strings.Split(os.Getenv("NAMESRV_ADDR"), ";")), producer.WithGroupName("go-archive"))
	must(t, err)
	must(t, shop.Start())
	defer shop.Shutdown()
	for range 30 { // it is made on each broker by the first message that comes there
		must(t, sendOne(shop))
	}

	permission := exec.Command(
		"rmqemu", "ctl", "--run", os.Getenv("RMQEMU_RUN"), "permission", "brokers", "4", "topic", archive)
	must(t, permission.Run())
	// It asks for the route every 30 s; until then brokers take what it sends.
	for tenths := 0; err == nil && tenths < 450; tenths++ {
		time.Sleep(100 * time.Millisecond)
		err = sendOne(shop)
	}
	if err == nil {
		t.Fatal("a topic that may only be read still takes messages")
	}
	t.Logf("read only: %v", err)

	ctl(t, "heal", "all")
	for tenths := 0; err != nil && tenths < 450; tenths++ {
		time.Sleep(100 * time.Millisecond)
		err = sendOne(shop)
	}
	must(t, err)
}

func sendOne(shop rocketmq.Producer) error {
	_, err := shop.SendSync(context.Background(), primitive.NewMessage(archive, []byte("an order")))
	return err
}
