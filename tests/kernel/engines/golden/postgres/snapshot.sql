SELECT
  "c0",
  "c1",
  "c2",
  "c3",
  "c4",
  "c5",
  "g1",
  COUNT(*) AS n
FROM (
  SELECT
    CAST("c0" AS SMALLINT) AS c0,
    CAST("c1" AS SMALLINT) AS c1,
    CAST("g1" AS INT) AS g1,
    CAST("c2" AS SMALLINT) AS c2,
    CAST("c3" AS SMALLINT) AS c3,
    CAST("c4" AS SMALLINT) AS c4,
    CAST("c5" AS SMALLINT) AS c5
  FROM (
    SELECT
      "c0",
      CASE WHEN "g1" < 0 THEN 2 WHEN "g1" < 6 THEN 0 ELSE 1 END AS c1,
      "g1",
      "c2",
      "c3",
      "c4",
      "c5"
    FROM (
      SELECT
        "c0",
        CASE
          WHEN "x1" IS NULL OR "x1" = CAST('NaN' AS DOUBLE PRECISION)
          THEN -1
          ELSE LEAST(
            CAST(FLOOR(
              (
                (
                  LEAST(GREATEST("x1", CAST(0.0 AS DOUBLE PRECISION)), CAST(9.0 AS DOUBLE PRECISION)) - CAST(0.0 AS DOUBLE PRECISION)
                ) / CAST(0.5 AS DOUBLE PRECISION)
              ) + CAST(1e-06 AS DOUBLE PRECISION)
            ) AS BIGINT),
            18
          )
        END AS g1,
        "c2",
        "c3",
        "c4",
        "c5"
      FROM (
        SELECT
          CASE
            WHEN CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) IS NULL
            OR CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) = ''
            THEN NULL
            WHEN CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) = 'f''); DROP TABLE coded; --'
            THEN 0
            WHEN CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) = 'm"'
            THEN 1
            WHEN CAST("source_rows"."sex""; DROP TABLE coded; --" AS TEXT) = '(select 1)'
            THEN 2
            ELSE 3
          END AS c0,
          CAST("source_rows"."order" AS DOUBLE PRECISION) AS x1,
          CASE
            WHEN "source_rows"."wage's group" IS NULL
            THEN 3
            WHEN "source_rows"."wage's group" = CAST('1' AS DECIMAL)
            THEN 0
            WHEN "source_rows"."wage's group" = CAST('2.5' AS DECIMAL)
            THEN 1
            ELSE NULL
          END AS c2,
          CASE
            WHEN CASE
              WHEN "source_rows"."select"
              THEN 'true'
              WHEN NOT "source_rows"."select"
              THEN 'false'
            END = 'true'
            THEN 0
            WHEN CASE
              WHEN "source_rows"."select"
              THEN 'true'
              WHEN NOT "source_rows"."select"
              THEN 'false'
            END = 'false'
            THEN 1
            ELSE NULL
          END AS c3,
          CASE WHEN NOT "v4"."k" IS NULL THEN "v4"."k" ELSE NULL END AS c4,
          CASE
            WHEN CAST("source_rows"."y" AS TEXT) = 'no'
            THEN 0
            WHEN CAST("source_rows"."y" AS TEXT) = 'yes'
            THEN 1
            WHEN CAST("source_rows"."y" AS TEXT) = 'maybe'
            THEN 2
            ELSE NULL
          END AS c5
        FROM (
          SELECT
            *
          FROM (
            SELECT
              CAST("sex""; DROP TABLE coded; --" AS TEXT) COLLATE "C" AS "sex""; DROP TABLE coded; --",
              CASE
                WHEN ABS("order") < CAST(1e-300 AS DOUBLE PRECISION)
                THEN CAST(0 AS DOUBLE PRECISION)
                ELSE "order"
              END AS "order",
              NULLIF("wage's group", CAST('NaN' AS DECIMAL)) AS "wage's group",
              "select" AS "select",
              CASE
                WHEN OCTET_LENGTH(CAST("many" AS TEXT)) > 8192
                THEN LEFT(CAST("many" AS TEXT), 4)
                ELSE CAST("many" AS TEXT)
              END COLLATE "C" AS "many",
              CAST("y" AS TEXT) COLLATE "C" AS "y"
            FROM ONLY "golden.schema"."it's ""t"
            OFFSET '0'
          ) AS stored
          OFFSET '0'
        ) AS source_rows
        LEFT JOIN (VALUES
          ('''0', 0),
          ('''1', 1),
          ('''2', 2),
          ('''3', 3),
          ('''4', 4),
          ('''5', 5),
          ('''6', 6),
          ('''7', 7),
          ('''8', 8),
          ('''9', 9),
          ('''10', 10),
          ('''11', 11),
          ('''12', 12),
          ('''13', 13),
          ('''14', 14),
          ('''15', 15),
          ('''16', 16),
          ('''17', 17),
          ('''18', 18),
          ('''19', 19),
          ('''20', 20),
          ('''21', 21),
          ('''22', 22),
          ('''23', 23),
          ('''24', 24),
          ('''25', 25),
          ('''26', 26),
          ('''27', 27),
          ('''28', 28),
          ('''29', 29),
          ('''30', 30),
          ('''31', 31),
          ('''32', 32)) AS v4(t, k)
          ON CAST("source_rows"."many" AS TEXT) = "v4"."t"
        OFFSET '0'
      ) AS numbers
      OFFSET '0'
    ) AS grids
    OFFSET '0'
  ) AS fits
  WHERE
    (
      NOT "c0" IS NULL AND (
        NOT "c1" IS NULL AND NOT "c2" IS NULL
      )
    )
    AND (
      NOT "c3" IS NULL AND (
        NOT "c4" IS NULL AND NOT "c5" IS NULL
      )
    )
  OFFSET '0'
) AS coded
GROUP BY
  "c0",
  "c1",
  "c2",
  "c3",
  "c4",
  "c5",
  "g1";
