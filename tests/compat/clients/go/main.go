// franz-go as a process for tests.
//
//	client member BOOTSTRAP GROUP TOPIC ASSIGNOR SESSION_MS HEARTBEAT_MS [INSTANCE]
//	client produce BOOTSTRAP TOPIC CODEC
//
// A member prints one JSON value per line: {"owns": [0, 1]} after a change, {"read": [partition, offset, ...]} before a commit,
// {"committed": true} after it; it leaves the group when stdin closes. A producer reads JSON lines {"partition", "key",
// "value", "headers"} with base64 values, and prints {"sent": {partition: first offset}}.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

var balancers = map[string]func() kgo.GroupBalancer{
	"range": kgo.RangeBalancer, "roundrobin": kgo.RoundRobinBalancer, "sticky": kgo.StickyBalancer,
	"cooperative-sticky": kgo.CooperativeStickyBalancer,
}

var codecs = map[string]kgo.CompressionCodec{
	"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
	"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
}

var emitLock sync.Mutex // rebalance callbacks run in other goroutines than polls

func emit(name string, value any) {
	line, err := json.Marshal(map[string]any{name: value})
	check(err)
	emitLock.Lock()
	defer emitLock.Unlock()
	fmt.Println(string(line))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func milliseconds(text string) time.Duration {
	count, err := strconv.Atoi(text)
	check(err)
	return time.Duration(count) * time.Millisecond
}

// owned is the member's assignment, printed after each change.
type owned struct {
	mutex      sync.Mutex
	topic      string
	partitions []int32
}

func (o *owned) gained(_ context.Context, _ *kgo.Client, given map[string][]int32) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.partitions = append(o.partitions, given[o.topic]...)
	slices.Sort(o.partitions)
	emit("owns", o.partitions)
}

func (o *owned) lost(_ context.Context, _ *kgo.Client, revoked map[string][]int32) {
	o.mutex.Lock()
	defer o.mutex.Unlock()
	o.partitions = slices.DeleteFunc(o.partitions, func(partition int32) bool { return slices.Contains(revoked[o.topic], partition) })
	emit("owns", o.partitions)
}

func member(words []string) {
	bootstrap, group, topic, assignor, sessionMs, heartbeatMs := words[0], words[1], words[2], words[3], words[4], words[5]
	mine := &owned{topic: topic, partitions: []int32{}}
	options := []kgo.Opt{
		kgo.SeedBrokers(bootstrap), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.Balancers(balancers[assignor]()),
		kgo.SessionTimeout(milliseconds(sessionMs)), kgo.HeartbeatInterval(milliseconds(heartbeatMs)),
		kgo.RebalanceTimeout(10 * time.Second), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.DisableAutoCommit(),
		kgo.FetchMaxWait(100 * time.Millisecond), kgo.MetadataMaxAge(time.Second), kgo.MetadataMinAge(100 * time.Millisecond),
		kgo.BlockRebalanceOnPoll(), // commit what was read before the partition is reassigned
		kgo.OnPartitionsAssigned(mine.gained), kgo.OnPartitionsRevoked(mine.lost), kgo.OnPartitionsLost(mine.lost),
		kgo.WithLogger(kgo.BasicLogger(os.Stderr, kgo.LogLevelWarn, nil)),
	}
	if len(words) > 6 {
		options = append(options, kgo.InstanceID(words[6]))
	}
	client, err := kgo.NewClient(options...)
	check(err)
	ctx, stop := context.WithCancel(context.Background())
	go func() {
		_, _ = io.Copy(io.Discard, os.Stdin)
		stop()
	}()
	for ctx.Err() == nil {
		fetches := client.PollFetches(ctx)
		fetches.EachPartition(func(part kgo.FetchTopicPartition) {
			if len(part.Records) == 0 {
				return
			}
			offsets := []int64{int64(part.Partition)}
			for _, record := range part.Records {
				offsets = append(offsets, record.Offset)
			}
			emit("read", offsets)
		})
		if !fetches.Empty() {
			if err := client.CommitUncommittedOffsets(context.Background()); err != nil {
				emit("rejected", err.Error())
			} else {
				emit("committed", true)
			}
		}
		client.AllowRebalance()
	}
	client.CloseAllowingRebalance()
}

type described struct {
	Partition int32
	Key       []byte
	Value     []byte
	Headers   []struct {
		Name  string
		Value []byte
	}
}

func produce(words []string) {
	bootstrap, topic, codec := words[0], words[1], words[2]
	client, err := kgo.NewClient(kgo.SeedBrokers(bootstrap), kgo.DefaultProduceTopic(topic),
		kgo.RecordPartitioner(kgo.ManualPartitioner()), kgo.ProducerBatchCompression(codecs[codec]))
	check(err)
	defer client.Close()
	var records []*kgo.Record
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var line described
		check(json.Unmarshal(lines.Bytes(), &line))
		record := &kgo.Record{Partition: line.Partition, Key: line.Key, Value: line.Value}
		for _, header := range line.Headers {
			record.Headers = append(record.Headers, kgo.RecordHeader{Key: header.Name, Value: header.Value})
		}
		records = append(records, record)
	}
	check(lines.Err())
	sent := map[int32]int64{}
	for _, result := range client.ProduceSync(context.Background(), records...) {
		check(result.Err)
		if _, known := sent[result.Record.Partition]; !known {
			sent[result.Record.Partition] = result.Record.Offset
		}
	}
	emit("sent", sent)
}

func main() {
	map[string]func([]string){"member": member, "produce": produce}[os.Args[1]](os.Args[2:])
}
