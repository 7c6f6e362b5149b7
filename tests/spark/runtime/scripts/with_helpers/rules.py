from pyspark.sql.functions import udf
from pyspark.sql.types import StringType

SCHEMA = "id string, k string, v long, side string, ts timestamp"


@udf(StringType())
def shout(text):
    return text.upper() + "!"
