"""The pipelines of a project as one process.

runner              ticks for views, queries for streams; takes over what changed
running_streams     streams while they run: started, watched, restarted one by one
running_patterns    patterns and percolations, each with ticks of its own
requests            what an operator asks of the process, as small files
"""
