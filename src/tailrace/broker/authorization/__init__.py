"""Who may do what: Kafka's access rules, kept and enforced by the broker.

    acls         one rule, and the filters that find rules            pure
    table        all rules, and what they say about one operation     pure
    authorizer   super users, remembered decisions, the audit log
    guards       what each request asks for, before its handler sees it:
                 topic_guards, group_guards, offset_guards,
                 transaction_guards, cluster_guards, share_guards

Nothing here is loaded while `authorizer.class.name` is empty. Produce, Fetch, ShareFetch and
ShareAcknowledge ask the authorizer in their own handlers; every other request has a guard.
"""
