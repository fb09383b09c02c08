"""rpart, partykit and PMML: read as they are written, and refused in a sentence whatever is damaged."""

from __future__ import annotations

import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import privet
from privet.errors import PrivetError
from privet.risk.readers import FORMATS, pmml, read_tree, rpart

RPART = """n= 20

node), split, n, loss, yval, (yprob)
      * denotes terminal node

1) root 20 8 no (0.60000000 0.40000000)
  2) age< 30.5 10 1 no (0.90000000 0.10000000) *
  3) age>=30.5 10 3 yes (0.30000000 0.70000000)
    6) sex=f,x 5 2 no (0.60000000 0.40000000) *
    7) sex=m 5 0 yes (0.00000000 1.00000000) *
"""
PARTY = """Model formula:
y ~ age + sex

Fitted party:
[1] root
|   [2] age <= 30: no (n = 10, err = 10.0%)
|   [3] age > 30
|   |   [4] sex in f, x: no (n = 5, err = 40.0%)
|   |   [5] sex in m: yes (n = 5, err = 0.0%)

Number of inner nodes:    2
"""
PMML = """<?xml version="1.0"?><PMML xmlns="http://www.dmg.org/PMML-4_2"><TreeModel functionName="classification">
<Node id="1" score="no" recordCount="20"><True/>
 <Node id="2" score="no" recordCount="10"><SimplePredicate field="age" operator="lessThan" value="30.5"/>
  <ScoreDistribution value="no" recordCount="9"/><ScoreDistribution value="yes" recordCount="1"/></Node>
 <Node id="3" score="yes" recordCount="10"><SimplePredicate field="age" operator="greaterOrEqual" value="30.5"/>
  <Node id="6" score="no"><SimpleSetPredicate field="sex" booleanOperator="isIn"><Array type="string">f "x"</Array>
   </SimpleSetPredicate><ScoreDistribution value="no" recordCount="3"/><ScoreDistribution value="yes" recordCount="2"/>
  </Node>
  <Node id="7" score="yes"><SimplePredicate field="sex" operator="equal" value="m"/>
   <ScoreDistribution value="no" recordCount="0"/><ScoreDistribution value="yes" recordCount="5"/></Node>
 </Node></Node></TreeModel></PMML>"""
PEOPLE = pd.DataFrame({"age": [20] * 10 + [40] * 10, "sex": ["f", "m"] * 5 + ["f"] * 3 + ["x"] * 2 + ["m"] * 5})


def test_values_that_pmml_only_counts_are_public_values_too() -> None:
    counts = "".join(f'<ScoreDistribution value="{v}" recordCount="{n}"/>' for v, n in (("no", 4), ("yes", 1)))
    found = pmml.parse(f'<PMML><TreeModel><Node score="no" recordCount="5"><True/>{counts}</Node></TreeModel></PMML>')
    assert found.values == ("no", "yes") and found.nodes[0].counts == (4.0, 1.0)


@pytest.mark.parametrize("text", [RPART, PARTY, PMML], ids=["rpart", "partykit", "PMML"])
def test_the_same_tree_of_three_writers_gives_the_same_audit(text: str) -> None:
    found = privet.audit(text, PEOPLE, sensitive="y", remedies=False)
    assert found.values == ("no", "yes") and found.people.total == 20
    assert found.own.largest == pytest.approx(0.6 / 5)  # of those who are yes, alone in their leaf of five
    assert found.publication is not None and [
        int(found.publication.sizes[leaf]) for leaf in found.publication.leaves
    ] == [10, 5, 5]


@pytest.mark.parametrize("text", [RPART, PARTY, PMML], ids=["rpart", "partykit", "PMML"])
@settings(max_examples=150, deadline=None, derandomize=True)
@given(st.integers(0, 2000), st.integers(0, 40), st.text(max_size=6))
def test_whatever_is_damaged_is_a_sentence(text: str, at: int, cut: int, put: str) -> None:
    damaged = text[: at % len(text)] + put + text[at % len(text) + cut :]
    for read in (rpart.parse, pmml.parse, read_tree):
        try:
            read(damaged + "\n")
        except PrivetError as error:
            assert str(error).count("\n") == 0


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (RPART.replace("  3) age", "  5) age"), "the one above it is missing"),
        (RPART.replace("(0.90000000 0.10000000)", "(0.9 0.05 0.05)"), "shares, and 2 values are known"),
        (PARTY.replace("err = 10.0%", "wrong"), "expected a leaf like"),
        (PMML.replace("lessThan", "near"), "a predicate that is not read"),
        (PMML.replace("<PMML", "<!DOCTYPE x [<!ENTITY a 'b'>]><PMML"), "entities, which are not read"),
        (PMML.replace("</TreeModel>", ""), "no well-formed XML"),
        ("hello\nworld\n", FORMATS),
        ("digraph Tree {\nnode [shape=box] ;\n}\n", FORMATS),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str) -> None:
    with pytest.raises(PrivetError) as raised:
        read_tree(text)
    assert said in str(raised.value)
