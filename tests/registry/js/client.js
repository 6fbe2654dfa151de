// Confluent's client and serializers for JavaScript: URL USER PASSWORD CA THEIRS (all but URL may be empty).
// Prints what it did as JSON; bytes as base64.
const { SchemaRegistryClient, AvroSerializer, AvroDeserializer, JsonSerializer, JsonDeserializer, SerdeType } = require("@confluentinc/schemaregistry");

async function main() {
  const [url, user, password, , theirs] = process.argv.slice(2);
  const login = user ? { basicAuthCredentials: { credentialsSource: "USER_INFO", userInfo: `${user}:${password}` } } : {};
  const client = new SchemaRegistryClient({ baseURLs: [url], ...login });
  const order = JSON.stringify({ type: "record", name: "Order", fields: [{ name: "id", type: "long" }, { name: "note", type: ["null", "string"], default: null }] });
  const saw = { ids: [await client.register("js-value", { schemaType: "AVRO", schema: order }), await client.register("js-value", { schemaType: "AVRO", schema: order })] };
  const avro = new AvroSerializer(client, SerdeType.VALUE, { useLatestVersion: true });
  const bytes = await avro.serialize("js", { id: 7, note: "x" });
  saw.avro = bytes.toString("base64");
  saw.back = await new AvroDeserializer(client, SerdeType.VALUE, {}).deserialize("js", bytes);
  const shape = JSON.stringify({ $schema: "http://json-schema.org/draft-07/schema#", type: "object", properties: { n: { type: "integer" } }, required: ["n"] });
  await client.register("shapes-value", { schemaType: "JSON", schema: shape });
  const json = new JsonSerializer(client, SerdeType.VALUE, { useLatestVersion: true, validate: true });
  const text = await json.serialize("shapes", { n: 3 });
  saw.json = text.toString("base64");
  saw.shape = await new JsonDeserializer(client, SerdeType.VALUE, {}).deserialize("shapes", text);
  saw.refused = await json.serialize("shapes", { n: "three" }).then(() => false, () => true);
  if (theirs) saw.theirs = await new AvroDeserializer(client, SerdeType.VALUE, {}).deserialize("js", Buffer.from(theirs, "base64"));
  saw.subjects = await client.getAllSubjects();
  saw.versions = await client.getAllVersions("js-value");
  saw.incompatible = await client.register("js-value", { schemaType: "AVRO", schema: JSON.stringify("int") }).then(() => 0, (error) => error.status ?? error.response?.status ?? -1);
  saw.compatible = await client.testSubjectCompatibility("js-value", { schemaType: "AVRO", schema: order });
  saw.level = await client.updateCompatibility("js-value", "FULL");
  saw.deleted = await client.deleteSubject("shapes-value");
  console.log(JSON.stringify(saw));
  process.exit(0);
}
main().catch((error) => { console.error(error); process.exit(1); });
