"""What `tailrace check` says of a project's mirrors."""

from __future__ import annotations

import difflib
import re

from tailrace.errors import TailraceError
from tailrace.mirroring.errors import MirrorDeclarationError
from tailrace.mirroring.plan import LATEST, OWN_LOG, SAME, SITE, MirrorPlan
from tailrace.project.graph import writers
from tailrace.project.load import Project


def look(project: Project, plan: MirrorPlan, connect: bool = False) -> str:
    """One line of what it does, or the error that names where it is declared; `connect`: both
    ends are asked."""
    place = project.places[f"mirror {plan.name}"]
    try:
        refuse_mistakes(project, plan)
        if connect:
            _ask(project, plan)
    except TailraceError as error:
        if place not in error.detail:
            error.detail = "\n".join(filter(None, (error.detail, f"declared at {place}")))
        raise
    words = f"{', '.join(plan.topics)} from {plan.source} to {plan.target}"
    if plan.names != SAME:
        words += f" as {plan.source}.…"
    if any(each is not plan and {each.source, each.target} == {plan.source, plan.target}
           for each in project.mirrors.values()):  # fmt: skip
        words += f"; both ways, {_rule(plan)}"
    return words


def _rule(plan: MirrorPlan) -> str:
    if plan.conflicts is None:
        return "both sides' records are merged"
    if plan.conflicts == LATEST:
        return "of a key the latest record wins"
    return f"of a key what {plan.conflicts.removeprefix(SITE)} wrote wins"


def refuse_mistakes(project: Project, plan: MirrorPlan) -> None:
    """Raises MirrorDeclarationError for what can be known without asking either end."""
    known = {*project.settings.clusters, OWN_LOG}
    for name in (plan.source, plan.target):
        if name not in known:
            near = difflib.get_close_matches(name, known, n=1)
            raise MirrorDeclarationError(
                f"mirror {plan.name!r} names the cluster {name!r}, which is not known",
                hint=f"did you mean {near[0]!r}?" if near else f'add [clusters.{name}] with bootstrap = "HOST:PORT"',
            )  # fmt: skip
    site = (plan.conflicts or "").removeprefix(SITE)
    if plan.conflicts not in (None, LATEST) and site not in known:
        raise MirrorDeclarationError(
            f"mirror {plan.name!r} lets the site {site!r} win, which is not known",
            hint=f"sites are the names of clusters: {', '.join(sorted(known))}",
        )
    own = plan.target == OWN_LOG and OWN_LOG not in project.settings.clusters
    if own and plan.names == SAME:
        wanted = re.compile(plan.topics_pattern)
        for topic, what in writers(project).items():
            if wanted.fullmatch(topic):
                raise MirrorDeclarationError(
                    f"mirror {plan.name!r} writes {topic}, which holds {what}",
                    hint='choose other topics, or names = "prefix"',
                )
    for other in project.mirrors.values():
        back = (other.source, other.target) == (plan.target, plan.source)
        if back and other.names == plan.names == SAME and other.conflicts != plan.conflicts:
            raise MirrorDeclarationError(
                f"mirrors {plan.name!r} and {other.name!r} settle conflicts by different rules",
                detail=f"{plan.conflicts or 'none'} and {other.conflicts or 'none'}: both sides "
                "would end with different records",
                hint="give both the same conflicts",
            )


def _ask(project: Project, plan: MirrorPlan) -> None:
    from tailrace.client.admin import Admin

    own = project.settings.bootstrap
    for name in (plan.source, plan.target):
        if name == OWN_LOG and name not in project.settings.clusters:
            continue
        with Admin(project.cluster(name, own), timeout=10.0) as admin:
            admin.cluster.any()  # at once: nobody waits for a check
