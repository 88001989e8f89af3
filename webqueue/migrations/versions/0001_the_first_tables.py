"""The first tables"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from webqueue.database import types

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "audit",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("by", sa.String(length=128), nullable=False),
        sa.Column("action", sa.String(length=64), nullable=False),
        sa.Column("object_kind", sa.String(length=32), nullable=False),
        sa.Column("object_name", types.Text(), nullable=False),
        sa.Column("before", types.JSONData(), nullable=True),
        sa.Column("after", types.JSONData(), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_audit")),
    )
    with op.batch_alter_table("audit", schema=None) as batch_op:
        batch_op.create_index("ix_audit_object", ["object_kind", "object_name", "id"], unique=False)

    op.create_table(
        "deliveries",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("status", sa.String(length=15), nullable=False),
        sa.Column("retry_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("dedupe_key", sa.String(length=128), nullable=False),
        sa.Column("payload", types.JSONData(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("last_error", types.Text(), nullable=True),
        sa.Column("created_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("delivered_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("modified_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_deliveries")),
        sa.UniqueConstraint("dedupe_key", name=op.f("uq_deliveries_dedupe_key")),
    )
    with op.batch_alter_table("deliveries", schema=None) as batch_op:
        batch_op.create_index("ix_deliveries_due", ["retry_at"], unique=False)

    op.create_table(
        "login_attempts",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("address", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_login_attempts")),
    )
    with op.batch_alter_table("login_attempts", schema=None) as batch_op:
        batch_op.create_index("ix_login_attempts_address_at", ["address", "at"], unique=False)
        batch_op.create_index("ix_login_attempts_name_at", ["name", "at"], unique=False)

    op.create_table(
        "processes",
        sa.Column("id", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=15), nullable=False),
        sa.Column("hostname", types.Text(), nullable=False),
        sa.Column("pid", sa.Integer(), nullable=False),
        sa.Column("threads", sa.Integer(), nullable=False),
        sa.Column("started_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("heartbeat_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_processes")),
    )
    with op.batch_alter_table("processes", schema=None) as batch_op:
        batch_op.create_index("ix_processes_role", ["role", "heartbeat_at"], unique=False)

    op.create_table(
        "rate_groups",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("adapter", sa.String(length=32), nullable=False),
        sa.Column("host_suffix", sa.String(length=255), nullable=False),
        sa.Column("grow_interval", sa.Boolean(), nullable=False),
        sa.Column("cooldown_factor", sa.Double(), nullable=False),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_rate_groups")),
        sa.UniqueConstraint("adapter", "host_suffix", name=op.f("uq_rate_groups_adapter")),
    )
    op.create_table(
        "rate_keys",
        sa.Column("key", sa.String(length=255), nullable=False),
        sa.Column("status", sa.String(length=15), nullable=False),
        sa.Column("retry_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("leased_by", sa.String(length=64), nullable=True),
        sa.Column("extensions", sa.Integer(), nullable=False),
        sa.Column("paused_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("paused_by", sa.String(length=128), nullable=True),
        sa.Column("paused_note", types.Text(), nullable=False),
        sa.Column("cooldown_until", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("cooldown_cause", types.Text(), nullable=True),
        sa.Column("gap_until", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("gap_cause", types.Text(), nullable=True),
        sa.Column("consecutive_blocks", sa.Integer(), nullable=False),
        sa.Column("interval_sec", sa.Double(), nullable=False),
        sa.Column("last_request_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("created_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("modified_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("key", name=op.f("pk_rate_keys")),
    )
    with op.batch_alter_table("rate_keys", schema=None) as batch_op:
        batch_op.create_index(
            "ix_rate_keys_due", ["retry_at"], unique=False, postgresql_where=sa.text("retry_at IS NOT NULL")
        )
        batch_op.create_index("ix_rate_keys_leased_by", ["leased_by"], unique=False)

    op.create_table(
        "settings",
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("value", types.JSONData(), nullable=False),
        sa.Column("changed_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("changed_by", sa.String(length=128), nullable=False),
        sa.PrimaryKeyConstraint("name", name=op.f("pk_settings")),
    )
    op.create_table(
        "sites",
        sa.Column("code", sa.String(length=64), nullable=False),
        sa.Column("name", types.Text(), nullable=False),
        sa.Column("base_url", types.Text(), nullable=False),
        sa.Column("host", sa.String(length=255), nullable=False),
        sa.Column("adapter", sa.String(length=32), nullable=False),
        sa.Column("timezone", sa.String(length=64), nullable=False),
        sa.Column("rate_key", sa.String(length=255), nullable=True),
        sa.Column("min_gap_sec", sa.Double(), nullable=False),
        sa.Column("cooldown_sec", sa.Integer(), nullable=True),
        sa.Column("allowed_hours", sa.String(length=64), nullable=True),
        sa.Column("obey_robots", sa.Boolean(), nullable=False),
        sa.Column("http", types.JSONData(), nullable=False),
        sa.Column("created_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("changed_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("code", name=op.f("pk_sites")),
    )
    with op.batch_alter_table("sites", schema=None) as batch_op:
        batch_op.create_index(batch_op.f("ix_sites_host"), ["host"], unique=False)

    op.create_table(
        "tokens",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("token_hash", sa.String(length=64), nullable=False),
        sa.Column("role", sa.String(length=15), nullable=False),
        sa.Column("created_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("expires_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("last_used_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("revoked_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_tokens")),
        sa.UniqueConstraint("name", name=op.f("uq_tokens_name")),
        sa.UniqueConstraint("token_hash", name=op.f("uq_tokens_token_hash")),
    )
    op.create_table(
        "users",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("name", sa.String(length=64), nullable=False),
        sa.Column("password_hash", sa.String(length=255), nullable=False),
        sa.Column("role", sa.String(length=15), nullable=False),
        sa.Column("session_key", sa.String(length=32), nullable=False),
        sa.Column("theme", sa.String(length=8), nullable=False),
        sa.Column("created_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("disabled_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("last_login_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_users")),
        sa.UniqueConstraint("name", name=op.f("uq_users_name")),
    )
    op.create_table(
        "key_events",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("rate_key", sa.String(length=255), nullable=False),
        sa.Column("at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("kind", sa.String(length=32), nullable=False),
        sa.Column("by", sa.String(length=128), nullable=False),
        sa.Column("message", types.Text(), nullable=False),
        sa.Column("data", types.JSONData(), nullable=False),
        sa.Column("job_id", sa.String(length=12), nullable=True),
        sa.ForeignKeyConstraint(["rate_key"], ["rate_keys.key"], name=op.f("fk_key_events_rate_key")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_key_events")),
    )
    with op.batch_alter_table("key_events", schema=None) as batch_op:
        batch_op.create_index("ix_key_events_key_id", ["rate_key", "id"], unique=False)

    op.create_table(
        "targets",
        sa.Column("code", sa.String(length=64), nullable=False),
        sa.Column("site_code", sa.String(length=64), nullable=False),
        sa.Column("handler", sa.String(length=32), nullable=False),
        sa.Column("params", types.JSONData(), nullable=False),
        sa.Column("schedule", sa.String(length=255), nullable=True),
        sa.Column("timezone", sa.String(length=64), nullable=True),
        sa.Column("interval_sec", sa.Double(), nullable=False),
        sa.Column("overlap", sa.String(length=16), nullable=False),
        sa.Column("catch_up", sa.String(length=16), nullable=False),
        sa.Column("catch_up_limit", sa.Integer(), nullable=False),
        sa.Column("jitter_sec", sa.Integer(), nullable=False),
        sa.Column("start_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("end_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("track_checkpoint", sa.Boolean(), nullable=False),
        sa.Column("max_runtime_sec", sa.Integer(), nullable=False),
        sa.Column("retry_times", sa.Integer(), nullable=False),
        sa.Column("retry_wait_sec", sa.Integer(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("tags", types.JSONData(), nullable=False),
        sa.Column("note", types.Text(), nullable=False),
        sa.Column("owner", types.Text(), nullable=False),
        sa.Column("paused_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("paused_by", sa.String(length=128), nullable=True),
        sa.Column("learned_interval_sec", sa.Double(), nullable=True),
        sa.Column("clean_runs", sa.Integer(), nullable=False),
        sa.Column("next_tick_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("ticks_from", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("schedule_error", types.Text(), nullable=True),
        sa.Column("created_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("changed_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["site_code"], ["sites.code"], name=op.f("fk_targets_site_code")),
        sa.PrimaryKeyConstraint("code", name=op.f("pk_targets")),
    )
    with op.batch_alter_table("targets", schema=None) as batch_op:
        batch_op.create_index("ix_targets_next_tick", ["next_tick_at"], unique=False)
        batch_op.create_index(batch_op.f("ix_targets_site_code"), ["site_code"], unique=False)

    op.create_table(
        "documents",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("target_code", sa.String(length=64), nullable=False),
        sa.Column("url", types.Text(), nullable=False),
        sa.Column("url_hash", sa.String(length=64), nullable=False),
        sa.Column("title", types.Text(), nullable=False),
        sa.Column("text", types.Text(), nullable=True),
        sa.Column("published_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("first_seen_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("last_seen_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("changed_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(length=8), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("content_type", sa.String(length=255), nullable=False),
        sa.Column("etag", types.Text(), nullable=True),
        sa.Column("last_modified", types.Text(), nullable=True),
        sa.Column("original", sa.String(length=255), nullable=True),
        sa.Column("misses", sa.Integer(), nullable=False),
        sa.Column("first_job_id", sa.String(length=12), nullable=False),
        sa.Column("last_job_id", sa.String(length=12), nullable=False),
        sa.Column("last_root_id", sa.String(length=12), nullable=False),
        sa.ForeignKeyConstraint(["target_code"], ["targets.code"], name=op.f("fk_documents_target_code")),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_documents")),
        sa.UniqueConstraint("target_code", "url_hash", name=op.f("uq_documents_target_code")),
    )
    with op.batch_alter_table("documents", schema=None) as batch_op:
        batch_op.create_index("ix_documents_changed", ["changed_at", "id"], unique=False)
        batch_op.create_index("ix_documents_last_job", ["last_job_id", "id"], unique=False)
        batch_op.create_index("ix_documents_target_id", ["target_code", "id"], unique=False)

    op.create_table(
        "interval_changes",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("target_code", sa.String(length=64), nullable=False),
        sa.Column("at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("old_sec", sa.Double(), nullable=False),
        sa.Column("new_sec", sa.Double(), nullable=False),
        sa.Column("cause", types.Text(), nullable=False),
        sa.Column("job_id", sa.String(length=12), nullable=True),
        sa.ForeignKeyConstraint(
            ["target_code"],
            ["targets.code"],
            name=op.f("fk_interval_changes_target_code"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_interval_changes")),
    )
    with op.batch_alter_table("interval_changes", schema=None) as batch_op:
        batch_op.create_index("ix_interval_changes_target_id", ["target_code", "id"], unique=False)

    op.create_table(
        "jobs",
        sa.Column("seq", sa.Integer(), autoincrement=True, nullable=False),
        sa.Column("id", sa.String(length=12), nullable=False),
        sa.Column("root_id", sa.String(length=12), nullable=False),
        sa.Column("retry_of", sa.String(length=12), nullable=True),
        sa.Column("site_code", sa.String(length=64), nullable=False),
        sa.Column("target_code", sa.String(length=64), nullable=False),
        sa.Column("rate_key", sa.String(length=255), nullable=False),
        sa.Column("source", sa.String(length=15), nullable=False),
        sa.Column("created_by", sa.String(length=128), nullable=False),
        sa.Column("status", sa.String(length=15), nullable=False),
        sa.Column("attention", types.Text(), nullable=True),
        sa.Column("force", sa.Boolean(), nullable=False),
        sa.Column("from_page", sa.Integer(), nullable=False),
        sa.Column("tick", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("due_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("retry_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("enqueued_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("started_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("began_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("finished_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("moved_to_front_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("lease_token", sa.BigInteger(), nullable=False),
        sa.Column("leased_by", sa.String(length=64), nullable=True),
        sa.Column("stop_requested", sa.Boolean(), nullable=False),
        sa.Column("stop_requested_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("stop_requested_by", sa.String(length=128), nullable=True),
        sa.Column("attempt_count", sa.Integer(), nullable=False),
        sa.Column("cooldown_retry_count", sa.Integer(), nullable=False),
        sa.Column("failure_retry_count", sa.Integer(), nullable=False),
        sa.Column("current_page", sa.Integer(), nullable=False),
        sa.Column("last_completed_page", sa.Integer(), nullable=False),
        sa.Column("checkpoint", types.JSONData(), nullable=False),
        sa.Column("checkpoint_at", types.UTCDateTime(timezone=True), nullable=True),
        sa.Column("progress_current", sa.Integer(), nullable=True),
        sa.Column("progress_total", sa.Integer(), nullable=True),
        sa.Column("progress_message", types.Text(), nullable=False),
        sa.Column("counters", types.JSONData(), nullable=False),
        sa.Column("error_msg", types.Text(), nullable=True),
        sa.Column("result", types.JSONData(), nullable=True),
        sa.Column("modified_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["rate_key"], ["rate_keys.key"], name=op.f("fk_jobs_rate_key")),
        sa.ForeignKeyConstraint(["site_code"], ["sites.code"], name=op.f("fk_jobs_site_code")),
        sa.ForeignKeyConstraint(["target_code"], ["targets.code"], name=op.f("fk_jobs_target_code")),
        sa.PrimaryKeyConstraint("seq", name=op.f("pk_jobs")),
        sa.UniqueConstraint("id", name=op.f("uq_jobs_id")),
        sqlite_autoincrement=True,
    )
    with op.batch_alter_table("jobs", schema=None) as batch_op:
        batch_op.create_index("ix_jobs_finished", ["finished_at", "status"], unique=False)
        batch_op.create_index(
            "ix_jobs_key_finished",
            ["rate_key", "finished_at"],
            unique=False,
            sqlite_where=sa.text("finished_at IS NOT NULL"),
            postgresql_where=sa.text("finished_at IS NOT NULL"),
        )
        batch_op.create_index(
            "ix_jobs_open",
            ["target_code", "seq"],
            unique=False,
            sqlite_where=sa.text("finished_at IS NULL"),
            postgresql_where=sa.text("finished_at IS NULL"),
        )
        batch_op.create_index(
            "ix_jobs_queue",
            ["rate_key", "retry_at", "seq"],
            unique=False,
            sqlite_where=sa.text("status = 'queued'"),
            postgresql_where=sa.text("status = 'queued'"),
        )
        batch_op.create_index("ix_jobs_rate_key_seq", ["rate_key", "seq"], unique=False)
        batch_op.create_index("ix_jobs_root", ["root_id", "seq"], unique=False)
        batch_op.create_index(batch_op.f("ix_jobs_site_code"), ["site_code"], unique=False)
        batch_op.create_index("ix_jobs_status_seq", ["status", "seq"], unique=False)
        batch_op.create_index(
            "ix_jobs_target_finished",
            ["target_code", "finished_at"],
            unique=False,
            sqlite_where=sa.text("finished_at IS NOT NULL"),
            postgresql_where=sa.text("finished_at IS NOT NULL"),
        )
        batch_op.create_index("ix_jobs_target_seq", ["target_code", "seq"], unique=False)
        batch_op.create_index(
            "uq_jobs_running",
            ["rate_key"],
            unique=True,
            sqlite_where=sa.text("status = 'running'"),
            postgresql_where=sa.text("status = 'running'"),
        )
        batch_op.create_index("uq_jobs_tick", ["target_code", "tick"], unique=True)

    op.create_table(
        "document_aliases",
        sa.Column("target_code", sa.String(length=64), nullable=False),
        sa.Column("url_hash", sa.String(length=64), nullable=False),
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_document_aliases_document_id"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["target_code"], ["targets.code"], name=op.f("fk_document_aliases_target_code")
        ),
        sa.PrimaryKeyConstraint("target_code", "url_hash", name=op.f("pk_document_aliases")),
    )
    with op.batch_alter_table("document_aliases", schema=None) as batch_op:
        batch_op.create_index("ix_document_aliases_document_id", ["document_id"], unique=False)

    op.create_table(
        "document_versions",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("document_id", sa.Integer(), nullable=False),
        sa.Column("version", sa.Integer(), nullable=False),
        sa.Column("stored_at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("job_id", sa.String(length=12), nullable=False),
        sa.Column("title", types.Text(), nullable=False),
        sa.Column("text", types.Text(), nullable=True),
        sa.Column("content_hash", sa.String(length=64), nullable=False),
        sa.Column("original", sa.String(length=255), nullable=True),
        sa.ForeignKeyConstraint(
            ["document_id"],
            ["documents.id"],
            name=op.f("fk_document_versions_document_id"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_document_versions")),
        sa.UniqueConstraint("document_id", "version", name=op.f("uq_document_versions_document_id")),
    )
    op.create_table(
        "job_logs",
        sa.Column("id", sa.Integer(), nullable=False),
        sa.Column("job_seq", sa.Integer(), nullable=False),
        sa.Column("at", types.UTCDateTime(timezone=True), nullable=False),
        sa.Column("level", sa.String(length=10), nullable=False),
        sa.Column("message", types.Text(), nullable=False),
        sa.ForeignKeyConstraint(
            ["job_seq"], ["jobs.seq"], name=op.f("fk_job_logs_job_seq"), ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name=op.f("pk_job_logs")),
    )
    with op.batch_alter_table("job_logs", schema=None) as batch_op:
        batch_op.create_index("ix_job_logs_job_id", ["job_seq", "id"], unique=False)
