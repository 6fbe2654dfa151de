// Confluent's client and serializers for Go: URL USER PASSWORD CA THEIRS (all but URL may be empty).
// Prints what it did as JSON; bytes as base64.
package main

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"

	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/avro"
	"github.com/confluentinc/confluent-kafka-go/v2/schemaregistry/serde/jsonschema"
)

const order = `{"type":"record","name":"Order","fields":[{"name":"id","type":"long"},{"name":"note","type":["null","string"],"default":null}]}`

type Order struct {
	ID   int64   `json:"id" avro:"id"`
	Note *string `json:"note" avro:"note"`
}

type Shape struct {
	N int `json:"n"`
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	return value
}

func main() {
	url, user, password, ca, theirs := os.Args[1], os.Args[2], os.Args[3], os.Args[4], os.Args[5]
	config := schemaregistry.NewConfig(url)
	if user != "" {
		config = schemaregistry.NewConfigWithBasicAuthentication(url, user, password)
	}
	config.SslCaLocation = ca
	client := must(schemaregistry.NewClient(config))
	saw := map[string]any{}
	saw["id"] = must(client.Register("go-value", schemaregistry.SchemaInfo{Schema: order, SchemaType: "AVRO"}, false))
	settings := avro.NewSerializerConfig()
	settings.AutoRegisterSchemas = false
	settings.UseLatestVersion = true
	writer := must(avro.NewGenericSerializer(client, serde.ValueSerde, settings))
	note := "x"
	data := must(writer.Serialize("go", &Order{7, &note}))
	saw["avro"] = base64.StdEncoding.EncodeToString(data)
	reader := must(avro.NewGenericDeserializer(client, serde.ValueSerde, avro.NewDeserializerConfig()))
	var back Order
	if err := reader.DeserializeInto("go", data, &back); err != nil {
		must(0, err)
	}
	saw["back"] = back
	if theirs != "" {
		var found Order
		if err := reader.DeserializeInto("go", must(base64.StdEncoding.DecodeString(theirs)), &found); err != nil {
			must(0, err)
		}
		saw["theirs"] = found
	}
	shape := `{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`
	must(client.Register("shapes-value", schemaregistry.SchemaInfo{Schema: shape, SchemaType: "JSON"}, false))
	chosen := jsonschema.NewSerializerConfig()
	chosen.AutoRegisterSchemas = false
	chosen.UseLatestVersion = true
	chosen.EnableValidation = true
	texts := must(jsonschema.NewSerializer(client, serde.ValueSerde, chosen))
	saw["json"] = base64.StdEncoding.EncodeToString(must(texts.Serialize("shapes", &Shape{3})))
	saw["subjects"] = must(client.GetAllSubjects())
	saw["versions"] = must(client.GetAllVersions("go-value"))
	_, err := client.Register("go-value", schemaregistry.SchemaInfo{Schema: `"int"`, SchemaType: "AVRO"}, false)
	saw["refused"] = err != nil
	saw["compatible"] = must(client.TestSubjectCompatibility("go-value", schemaregistry.SchemaInfo{Schema: order, SchemaType: "AVRO"}))
	level := must(client.UpdateCompatibility("go-value", schemaregistry.Full))
	saw["level"] = level.String()
	saw["deleted"] = must(client.DeleteSubject("shapes-value", false))
	fmt.Println(string(must(json.Marshal(saw))))
}
