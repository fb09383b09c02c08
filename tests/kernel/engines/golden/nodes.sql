CREATE TABLE nodes0 AS
SELECT
  LIST_EXTRACT([0], 0 + 1) + CASE WHEN 0 IN (0) THEN "c0" END AS node
FROM coded;
CREATE TABLE nodes1 AS
SELECT
  CASE
    WHEN (
      (
        "g1" >= 2
      ) AND (
        "g1" < 15
      )
    ) AND "c5" IN (0, 2)
    THEN CASE WHEN "node" = 3 THEN 0 WHEN "node" = 0 THEN 1 WHEN "node" = 1 THEN 2 END
  END AS node
FROM coded
POSITIONAL JOIN nodes0;
CREATE TABLE nodes2 AS
SELECT
  LIST_EXTRACT([0, 4, 4], "node" + 1) + CASE
    WHEN "node" IN (0)
    THEN CASE WHEN "g1" < 0 THEN 3 WHEN "g1" < 4 THEN 0 WHEN "g1" < 9 THEN 1 ELSE 2 END
    WHEN "node" IN (2)
    THEN "c3"
  END AS node
FROM coded
POSITIONAL JOIN nodes1;
