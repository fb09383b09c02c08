"""What the owner of data prints from a ledger: an entry for a registry of deployments, and a bundle for an audit."""

from privet.owner_reports.bundle import audit_bundle
from privet.owner_reports.bundle_page import bundle_page
from privet.owner_reports.registry import SAY, SCHEMA, OwnerWords, registry_entry, to_yaml

__all__ = ["SAY", "SCHEMA", "OwnerWords", "audit_bundle", "bundle_page", "registry_entry", "to_yaml"]
