"""From the log to rows: what is committed, of an exact range, with the reason for what cannot be read.

reader       records of exact ranges; `ranges` the same as columns, and where topics begin and end
catalog      what the log says about its tables
decode       records of a table or a topic → Arrow rows
event_rows   records of event topics → rows
forms        records in the form a stream asks for
wire, registered: values in Confluent's wire format, and topics whose columns a registry knows
"""
