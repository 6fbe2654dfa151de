"""Files that run a project on a cluster: Kubernetes manifests, a service on an edge node of YARN.

`needs` says what the project asks for, `kubernetes` and `yarn` make the files from it, `files`
writes them. Nothing here talks to a cluster, and no value of a variable gets into a file.
"""
