"""What may be asked of rows: each module is one ask, with its price, its proof, its noise and its record."""

from understudy.boundary.privacy.asks.ask import Ask
from understudy.boundary.privacy.asks.catalogue import ASKS, kind_of, kind_of_spend, table_of_asks
from understudy.boundary.privacy.asks.consult import Consult
from understudy.boundary.privacy.asks.draws import Draws
from understudy.boundary.privacy.asks.keys import Keys
from understudy.boundary.privacy.asks.marginals import Marginals
from understudy.boundary.privacy.asks.partitions import Partitions
from understudy.boundary.privacy.asks.quantile import Quantile
from understudy.boundary.privacy.asks.ranks import Ranks
from understudy.boundary.privacy.asks.select import Select
from understudy.boundary.privacy.asks.tally import Tally
from understudy.boundary.privacy.asks.total import Total
from understudy.boundary.privacy.asks.train import Train

__all__ = [
    "ASKS",
    "Ask",
    "Consult",
    "Draws",
    "Keys",
    "Marginals",
    "Partitions",
    "Quantile",
    "Ranks",
    "Select",
    "Tally",
    "Total",
    "Train",
    "kind_of",
    "kind_of_spend",
    "table_of_asks",
]
