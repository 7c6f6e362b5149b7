"""Inside the driver: an unmodified PySpark script that can be watched, stopped and captured."""
