-- One row becomes many: elements of lists, words of a text, entries of a JSON document.

TABLE shop.public.orders (id BIGINT, tags ARRAY<STRING>, note STRING, extra STRING) KEY (id);

VIEW tags KEY (tag) AS
SELECT tag, count(*) AS orders FROM shop.orders LATERAL VIEW explode(tags) t AS tag GROUP BY tag;

VIEW words KEY (id, place) AS
SELECT id, w.place, w.word FROM shop.orders LATERAL VIEW OUTER posexplode(split(note, ' ')) w AS place, word;

VIEW gifts KEY (id) AS
SELECT id, from_json(extra, 'gift BOOLEAN, items ARRAY<STRUCT<sku: STRING, n: INT>>').gift AS gift,
       aggregate(from_json(extra, 'items ARRAY<STRUCT<sku: STRING, n: INT>>').items, 0, (acc, i) -> acc + i.n) AS pieces
FROM shop.orders;

TICK
+ shop.public.orders {"id":1,"tags":["new","gift"],"note":"be quick","extra":"{\"gift\":true,\"items\":[{\"sku\":\"a\",\"n\":2},{\"sku\":\"b\",\"n\":3}]}"}
+ shop.public.orders {"id":2,"tags":["new"],"note":null,"extra":"{\"items\":[]}"}
+ shop.public.orders {"id":3,"tags":[],"note":"","extra":"broken"}
= tags
{"tag":"gift","orders":1}
{"tag":"new","orders":2}
= words
{"id":1,"place":0,"word":"be"}
{"id":1,"place":1,"word":"quick"}
{"id":2,"place":null,"word":null}
{"id":3,"place":0,"word":""}
= gifts
{"id":1,"gift":true,"pieces":5}
{"id":2,"gift":null,"pieces":0}
{"id":3,"gift":null,"pieces":null}

TICK
+ shop.public.orders {"id":1,"tags":["gift","gift"],"note":"slow","extra":"{}"}
- shop.public.orders {"id":2}
= tags
{"tag":"gift","orders":2}
= words
{"id":1,"place":0,"word":"slow"}
{"id":3,"place":0,"word":""}
= gifts
{"id":1,"gift":null,"pieces":null}
{"id":3,"gift":null,"pieces":null}
