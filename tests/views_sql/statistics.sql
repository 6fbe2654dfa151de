-- Statistics of pairs, shapes and bits follow rows that come, change and leave.

TABLE shop.public.orders (id BIGINT, shop STRING, size INT, price DOUBLE, flags INT, tags ARRAY<STRING>) KEY (id);

VIEW per_shop AS
SELECT shop, corr(size, price) AS corr, covar_samp(size, price) AS covar,
       regr_slope(price, size) AS slope, regr_intercept(price, size) AS base,
       regr_count(price, size) AS pairs, skewness(size) AS skew, kurtosis(size) AS kurt,
       bit_and(flags) AS every, bit_or(flags) AS some, bit_xor(flags) AS odd,
       try_sum(size) AS total, collect_union(tags) AS tags
FROM shop.orders GROUP BY shop;

TICK
+ shop.public.orders {"id":1,"shop":"a","size":1,"price":10.0,"flags":7,"tags":["x","y"]}
+ shop.public.orders {"id":2,"shop":"a","size":2,"price":20.0,"flags":5,"tags":["y"]}
+ shop.public.orders {"id":3,"shop":"a","size":4,"price":40.0,"flags":13,"tags":null}
+ shop.public.orders {"id":4,"shop":"b","size":3,"price":null,"flags":-1,"tags":[]}
= per_shop
{"shop":"a","corr":1.0,"covar":23.333333333333332,"slope":10.0,"base":0.0,"pairs":3,"skew":0.3818017741606063,"kurt":-1.5,"every":5,"some":15,"odd":15,"total":7,"tags":["x","y"]}
{"shop":"b","corr":null,"covar":null,"slope":null,"base":null,"pairs":0,"skew":null,"kurt":null,"every":-1,"some":-1,"odd":-1,"total":3,"tags":[]}

TICK
+ shop.public.orders {"id":3,"shop":"a","size":4,"price":50.0,"flags":4,"tags":["z"]}
+ shop.public.orders {"id":5,"shop":"a","size":9,"price":50.0,"flags":4,"tags":["x"]}
= per_shop
{"shop":"a","corr":0.8177595307636584,"covar":60.0,"slope":4.7368421052631575,"base":13.552631578947368,"pairs":4,"skew":0.7684172579878226,"kurt":-1.0,"every":4,"some":7,"odd":2,"total":16,"tags":["x","y","z"]}
{"shop":"b","corr":null,"covar":null,"slope":null,"base":null,"pairs":0,"skew":null,"kurt":null,"every":-1,"some":-1,"odd":-1,"total":3,"tags":[]}

TICK
- shop.public.orders {"id":1}
- shop.public.orders {"id":4}
- shop.public.orders {"id":5}
= per_shop
{"shop":"a","corr":1.0,"covar":30.0,"slope":15.0,"base":-10.0,"pairs":2,"skew":0.0,"kurt":-2.0,"every":4,"some":5,"odd":1,"total":6,"tags":["y","z"]}
