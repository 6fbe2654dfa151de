"""XML documents and XPath 1.0, as Java's parser and XPath engine read them for Spark."""
