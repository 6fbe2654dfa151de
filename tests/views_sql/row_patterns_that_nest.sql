-- Loops of empty turns, alternatives, reluctance, permutations, exclusions, anchors, skips.
TABLE s.public.t (id BIGINT, v STRING) KEY (id);
VIEW nothing KEY (n) AS
SELECT n, id FROM s.t MATCH_RECOGNIZE (
    ORDER BY id MEASURES MATCH_NUMBER() AS n ALL ROWS PER MATCH
    PATTERN ((B*?)*) DEFINE B AS v = 'b') AS m;
VIEW preferred KEY (n) AS
SELECT n, names FROM s.t MATCH_RECOGNIZE (
    ORDER BY id MEASURES MATCH_NUMBER() AS n, array_agg(CLASSIFIER()) AS names
    PATTERN (A | A B)) AS m;
VIEW reluctant KEY (n) AS
SELECT n, names FROM s.t MATCH_RECOGNIZE (
    ORDER BY id MEASURES MATCH_NUMBER() AS n, array_agg(CLASSIFIER()) AS names
    PATTERN (A+? B{2,}) DEFINE B AS v = 'b') AS m;
VIEW orders KEY (n) AS
SELECT n, names FROM s.t MATCH_RECOGNIZE (
    ORDER BY id MEASURES MATCH_NUMBER() AS n, array_agg(CLASSIFIER()) AS names
    AFTER MATCH SKIP TO NEXT ROW
    PATTERN (PERMUTE(A, B)) DEFINE A AS v = 'a', B AS v = 'b') AS m;
VIEW left_out KEY (id) AS
SELECT id, name FROM s.t MATCH_RECOGNIZE (
    ORDER BY id MEASURES CLASSIFIER() AS name ALL ROWS PER MATCH
    PATTERN (A {- B+ -} C) DEFINE A AS v = 'a', B AS v = 'b') AS m;
VIEW whole KEY (names) AS
SELECT names FROM s.t MATCH_RECOGNIZE (
    ORDER BY id MEASURES listagg(CLASSIFIER(), '') AS names
    PATTERN (^ A B* C $) DEFINE B AS v = 'b') AS m;
VIEW first_steps KEY (id) AS
SELECT id, third, before_second FROM s.t MATCH_RECOGNIZE (
    ORDER BY id MEASURES FIRST(v, 2) AS third, PREV(FIRST(id, 1), 1) AS before_second
    ALL ROWS PER MATCH PATTERN (A+)) AS m;

TICK
+ s.public.t {"id": 1, "v": "a"}
+ s.public.t {"id": 2, "v": "b"}
+ s.public.t {"id": 3, "v": "b"}
+ s.public.t {"id": 4, "v": "c"}
= nothing
{"n": 1, "id": 1}
{"n": 2, "id": 2}
{"n": 3, "id": 3}
{"n": 4, "id": 4}
= preferred
{"n": 1, "names": ["A"]}
{"n": 2, "names": ["A"]}
{"n": 3, "names": ["A"]}
{"n": 4, "names": ["A"]}
= reluctant
{"n": 1, "names": ["A", "B", "B"]}
= orders
{"n": 1, "names": ["A", "B"]}
= left_out
{"id": 1, "name": "A"}
{"id": 4, "name": "C"}
= whole
{"names": "ABBC"}
= first_steps
{"id": 1, "third": null, "before_second": null}
{"id": 2, "third": null, "before_second": 1}
{"id": 3, "third": "b", "before_second": 1}
{"id": 4, "third": "b", "before_second": 1}

TICK
- s.public.t {"id": 1}
+ s.public.t {"id": 5, "v": "a"}
= reluctant
= orders
= left_out
= whole
= first_steps
{"id": 2, "third": null, "before_second": null}
{"id": 3, "third": null, "before_second": 2}
{"id": 4, "third": "c", "before_second": 2}
{"id": 5, "third": "c", "before_second": 2}
