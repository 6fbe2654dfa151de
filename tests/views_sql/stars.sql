-- All columns of a table as one value: a row as JSON, rows in a list, a struct taken apart.

TABLE shop.public.orders (id BIGINT, customer_id BIGINT, amount INT, address STRUCT<city: STRING, zip: STRING>) KEY (id);
TABLE shop.public.customers (id BIGINT, name STRING) KEY (id);

VIEW rows KEY (id) AS
SELECT id, to_json(struct(* EXCEPT (address))) AS row FROM shop.orders;

VIEW customers KEY (name) AS
SELECT c.name, collect_list(struct(o.* EXCEPT (customer_id, address)) ORDER BY o.id) AS orders
FROM shop.orders o JOIN shop.customers c ON c.id = o.customer_id GROUP BY c.name;

VIEW addresses KEY (id) AS
SELECT id, address.* FROM shop.orders;

TICK
+ shop.public.customers {"id":1,"name":"Ada"}
+ shop.public.orders {"id":10,"customer_id":1,"amount":5,"address":{"city":"Utrecht","zip":"3511"}}
+ shop.public.orders {"id":11,"customer_id":1,"amount":null,"address":null}
= rows
{"id":10,"row":"{\"id\":10,\"customer_id\":1,\"amount\":5}"}
{"id":11,"row":"{\"id\":11,\"customer_id\":1}"}
= customers
{"name":"Ada","orders":[{"id":10,"amount":5},{"id":11,"amount":null}]}
= addresses
{"id":10,"city":"Utrecht","zip":"3511"}
{"id":11,"city":null,"zip":null}

TICK
+ shop.public.orders {"id":11,"customer_id":1,"amount":7,"address":{"city":"Delft","zip":null}}
- shop.public.orders {"id":10}
= rows
{"id":11,"row":"{\"id\":11,\"customer_id\":1,\"amount\":7}"}
= customers
{"name":"Ada","orders":[{"id":11,"amount":7}]}
= addresses
{"id":11,"city":"Delft","zip":null}
