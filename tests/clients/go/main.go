// A franz-go client that does what the suite asks and prints what it saw.
//
//	go run . ADDRESS TOPIC produce COUNT | consume COUNT GROUP | transact COUNT | admin | acls
package main

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

func main() {
	address, topic, verb := os.Args[1], os.Args[2], os.Args[3]
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	switch verb {
	case "produce":
		produce(ctx, address, topic, number(4))
	case "consume":
		consume(ctx, address, topic, number(4), os.Args[5])
	case "transact":
		transact(ctx, address, topic, number(4))
	case "admin":
		administer(ctx, address, topic)
	case "acls":
		rules(ctx, address, topic)
	default:
		fail(fmt.Errorf("unknown verb %s", verb))
	}
}

func produce(ctx context.Context, address, topic string, count int) {
	client := connect(address, kgo.ProducerBatchCompression(kgo.SnappyCompression()))
	defer client.Close()
	for i := 0; i < count; i++ {
		record := &kgo.Record{Topic: topic, Key: []byte(strconv.Itoa(i)), Value: []byte(strconv.Itoa(i))}
		client.Produce(ctx, record, func(_ *kgo.Record, err error) { check(err) })
	}
	check(client.Flush(ctx))
	fmt.Println("produced", count)
}

func consume(ctx context.Context, address, topic string, count int, group string) {
	client := connect(address, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	defer client.Close()
	sum, seen := 0, 0
	for seen < count {
		fetches := client.PollFetches(ctx)
		for _, problem := range fetches.Errors() {
			check(problem.Err)
		}
		fetches.EachRecord(func(record *kgo.Record) {
			value, err := strconv.Atoi(string(record.Value))
			check(err)
			sum += value
			seen++
		})
	}
	check(client.CommitUncommittedOffsets(ctx))
	fmt.Println("consumed", seen, "sum", sum)
}

func transact(ctx context.Context, address, topic string, count int) {
	client := connect(address, kgo.TransactionalID(topic))
	defer client.Close()
	for i := 0; i < count; i++ {
		check(client.BeginTransaction())
		check(client.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(strconv.Itoa(i))}).FirstErr())
		check(client.EndTransaction(ctx, kgo.TransactionEndTry(i%2 == 0)))
	}
	fmt.Println("transactions", count)
}

func administer(ctx context.Context, address, topic string) {
	client := kadm.NewClient(connect(address))
	defer client.Close()
	value := "86400000"
	_, err := client.CreateTopic(ctx, 3, 1, map[string]*string{"retention.ms": &value}, topic)
	check(err)
	ends, err := client.ListEndOffsets(ctx, topic)
	check(err)
	check(ends.Error())
	configs, err := client.DescribeTopicConfigs(ctx, topic)
	check(err)
	for _, one := range configs[0].Configs {
		if one.Key == "retention.ms" {
			fmt.Println("partitions", len(ends[topic]), "retention", one.MaybeValue())
		}
	}
	_, err = client.DeleteTopic(ctx, topic)
	check(err)
}

func rules(ctx context.Context, address, topic string) {
	client := kadm.NewClient(connect(address))
	defer client.Close()
	wanted := kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternPrefixed).
		Operations(kadm.OpRead, kadm.OpWrite).Allow("User:alice").AllowHosts()
	created, err := client.CreateACLs(ctx, wanted)
	check(err)
	for _, one := range created {
		check(one.Err)
	}
	described, err := client.DescribeACLs(ctx, wanted)
	check(err)
	found := 0
	for _, one := range described {
		check(one.Err)
		found += len(one.Described)
	}
	deleted, err := client.DeleteACLs(ctx, wanted)
	check(err)
	gone := 0
	for _, one := range deleted {
		check(one.Err)
		gone += len(one.Deleted)
	}
	fmt.Println("created", len(created), "described", found, "deleted", gone)
}

func connect(address string, options ...kgo.Opt) *kgo.Client {
	client, err := kgo.NewClient(append(options, kgo.SeedBrokers(address), kgo.AllowAutoTopicCreation())...)
	check(err)
	return client
}

func number(index int) int {
	value, err := strconv.Atoi(os.Args[index])
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		fail(err)
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
