"""What is configured: the import file, and every change of sites, targets and rate groups (DESIGN section 8)."""

from __future__ import annotations

from webqueue.config.bulk import (
    BulkChange,
    Changed,
    PreparedChange,
    change_targets,
    pause_targets,
    prepare_change,
    resume_targets,
    with_tags,
    without_tags,
)
from webqueue.config.demo import (
    Demo,
    find_demo,
    forget_demo_jobs,
    load_demo,
    pause_demo,
    remove_demo,
)
from webqueue.config.editing import (
    delete_site,
    delete_target,
    pause_target,
    put_site,
    put_target,
    resume_target,
)
from webqueue.config.exporting import export_file
from webqueue.config.importing import import_file, prepare_import
from webqueue.config.keys import describe_key
from webqueue.config.masks import MASK, masked
from webqueue.config.plan import parse_file
from webqueue.config.report import Change, ImportReport, What
from webqueue.config.rows import site_data, target_data
from webqueue.config.specs import Defaults, File, HttpSpec, RateGroupSpec, RetrySpec, SiteSpec, TargetSpec
from webqueue.config.undoing import Undoing, can_undo, prepare_undo, undo

__all__ = [
    "MASK",
    "BulkChange",
    "Change",
    "Changed",
    "Defaults",
    "Demo",
    "File",
    "HttpSpec",
    "ImportReport",
    "PreparedChange",
    "RateGroupSpec",
    "RetrySpec",
    "SiteSpec",
    "TargetSpec",
    "Undoing",
    "What",
    "can_undo",
    "change_targets",
    "delete_site",
    "delete_target",
    "describe_key",
    "export_file",
    "find_demo",
    "forget_demo_jobs",
    "import_file",
    "load_demo",
    "masked",
    "parse_file",
    "pause_demo",
    "pause_target",
    "pause_targets",
    "prepare_change",
    "prepare_import",
    "prepare_undo",
    "put_site",
    "put_target",
    "remove_demo",
    "resume_target",
    "resume_targets",
    "site_data",
    "target_data",
    "undo",
    "with_tags",
    "without_tags",
]
