SELECT
  `c0`,
  `c1`,
  `c2`,
  `c3`,
  `c4`,
  `c5`,
  `g1`,
  COUNT(*) AS n
FROM coded
GROUP BY
  `c0`,
  `c1`,
  `c2`,
  `c3`,
  `c4`,
  `c5`,
  `g1`;
