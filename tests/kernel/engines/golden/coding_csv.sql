CREATE OR REPLACE TABLE coded AS
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
        WHEN "x1" IS NULL OR ISNAN("x1")
        THEN -1
        ELSE LEAST(
          CAST(FLOOR(
            (
              (
                LEAST(GREATEST("x1", CAST(0.0 AS DOUBLE)), CAST(9.0 AS DOUBLE)) - CAST(0.0 AS DOUBLE)
              ) / CAST(0.5 AS DOUBLE)
            ) + CAST(1e-06 AS DOUBLE)
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
          WHEN (
            CAST("source_rows"."f0" AS TEXT) COLLATE "binary"
          ) IS NULL
          OR (
            CAST("source_rows"."f0" AS TEXT) COLLATE "binary"
          ) = ''
          THEN NULL
          WHEN (
            CAST("source_rows"."f0" AS TEXT) COLLATE "binary"
          ) = 'f''); DROP TABLE coded; --'
          THEN 0
          WHEN (
            CAST("source_rows"."f0" AS TEXT) COLLATE "binary"
          ) = 'm"'
          THEN 1
          WHEN (
            CAST("source_rows"."f0" AS TEXT) COLLATE "binary"
          ) = '(select 1)'
          THEN 2
          ELSE 3
        END AS c0,
        CASE
          WHEN STRLEN(CAST("source_rows"."f1" AS TEXT) COLLATE "binary") <= 65536
          THEN COALESCE(
            CASE
              WHEN REGEXP_FULL_MATCH(
                CAST("source_rows"."f1" AS TEXT) COLLATE "binary",
                '[ \t]*[+-]?([0-9]+([.][0-9]*)?|[.][0-9]+)([eE][+-]?[0-9]+)?[ \t]*'
              )
              THEN TRY_CAST(CAST("source_rows"."f1" AS TEXT) COLLATE "binary" AS DOUBLE)
            END,
            CASE
              WHEN (
                CAST("source_rows"."f1" AS TEXT) COLLATE "binary"
              ) = 'true'
              THEN CAST(1 AS DOUBLE)
              WHEN (
                CAST("source_rows"."f1" AS TEXT) COLLATE "binary"
              ) = 'True'
              THEN CAST(1 AS DOUBLE)
              WHEN (
                CAST("source_rows"."f1" AS TEXT) COLLATE "binary"
              ) = 'TRUE'
              THEN CAST(1 AS DOUBLE)
              WHEN (
                CAST("source_rows"."f1" AS TEXT) COLLATE "binary"
              ) = 'false'
              THEN CAST(0 AS DOUBLE)
              WHEN (
                CAST("source_rows"."f1" AS TEXT) COLLATE "binary"
              ) = 'False'
              THEN CAST(0 AS DOUBLE)
              WHEN (
                CAST("source_rows"."f1" AS TEXT) COLLATE "binary"
              ) = 'FALSE'
              THEN CAST(0 AS DOUBLE)
            END
          )
        END AS x1,
        CASE
          WHEN (
            CAST("source_rows"."f2" AS TEXT) COLLATE "binary"
          ) IS NULL
          OR (
            CAST("source_rows"."f2" AS TEXT) COLLATE "binary"
          ) = ''
          THEN 3
          WHEN (
            CAST("source_rows"."f2" AS TEXT) COLLATE "binary"
          ) = '1'
          THEN 0
          WHEN (
            CAST("source_rows"."f2" AS TEXT) COLLATE "binary"
          ) = '2.5'
          THEN 1
          WHEN (
            CAST("source_rows"."f2" AS TEXT) COLLATE "binary"
          ) = 'x'
          THEN 2
          WHEN (
            CAST("source_rows"."f2" AS TEXT) COLLATE "binary"
          ) = '1.0'
          THEN 0
          WHEN STRLEN(CAST("source_rows"."f2" AS TEXT) COLLATE "binary") <= 400
          AND CAST("source_rows"."f2" AS TEXT) COLLATE "binary" LIKE '%.%'
          AND NOT CAST("source_rows"."f2" AS TEXT) COLLATE "binary" LIKE '%.%.%'
          THEN CASE RTRIM(RTRIM(CAST("source_rows"."f2" AS TEXT) COLLATE "binary", '0'), '.')
            WHEN '1'
            THEN 0
            WHEN '2.5'
            THEN 1
            ELSE NULL
          END
          ELSE NULL
        END AS c2,
        CASE
          WHEN (
            CAST("source_rows"."f3" AS TEXT) COLLATE "binary"
          ) = 'true'
          THEN 0
          WHEN (
            CAST("source_rows"."f3" AS TEXT) COLLATE "binary"
          ) = 'false'
          THEN 1
          WHEN (
            CAST("source_rows"."f3" AS TEXT) COLLATE "binary"
          ) = 'True'
          THEN 0
          WHEN (
            CAST("source_rows"."f3" AS TEXT) COLLATE "binary"
          ) = 'TRUE'
          THEN 0
          WHEN (
            CAST("source_rows"."f3" AS TEXT) COLLATE "binary"
          ) = 'False'
          THEN 1
          WHEN (
            CAST("source_rows"."f3" AS TEXT) COLLATE "binary"
          ) = 'FALSE'
          THEN 1
          ELSE NULL
        END AS c3,
        CASE WHEN NOT "v4"."k" IS NULL THEN "v4"."k" ELSE NULL END AS c4,
        CASE
          WHEN (
            CAST("source_rows"."f5" AS TEXT) COLLATE "binary"
          ) = 'no'
          THEN 0
          WHEN (
            CAST("source_rows"."f5" AS TEXT) COLLATE "binary"
          ) = 'yes'
          THEN 1
          WHEN (
            CAST("source_rows"."f5" AS TEXT) COLLATE "binary"
          ) = 'maybe'
          THEN 2
          ELSE NULL
        END AS c5
      FROM (
        SELECT
          *
        FROM records
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
        ON (
          CAST("source_rows"."f4" AS TEXT) COLLATE "binary"
        ) = "v4"."t"
    ) AS numbers
  ) AS grids
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
  );
