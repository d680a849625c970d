"""A model registry in files for MLflow 1, which has none: registered models lie below models/ of the tracking store, as MLflow 2 and 3 write
and read them there. MLflow loads this by an entry point of the group mlflow.model_registry_store. Python 3.6 and later; any version of MLflow 1.

Several processes may register at once: a model or a version is written aside as a whole and then renamed to a name that is free.
"""
import logging
import os
import re
import shutil
import tempfile
import time

import yaml

from mlflow.version import VERSION

if not VERSION.startswith("1."):
    raise ImportError("this MLflow, which the job has installed itself, has a model registry in files of its own")

from mlflow.entities.model_registry import ModelVersion, ModelVersionTag, RegisteredModel, RegisteredModelTag
from mlflow.entities.model_registry.model_version_stages import (
    ALL_STAGES, DEFAULT_STAGES_FOR_GET_LATEST_VERSIONS, STAGE_ARCHIVED, STAGE_NONE, get_canonical_stage)
from mlflow.exceptions import MlflowException
from mlflow.protos.databricks_pb2 import INVALID_PARAMETER_VALUE, RESOURCE_ALREADY_EXISTS, RESOURCE_DOES_NOT_EXIST
from mlflow.store.entities.paged_list import PagedList
from mlflow.store.model_registry.abstract_store import AbstractStore
from mlflow.tracking._model_registry import utils
from mlflow.utils import search_utils, validation
from mlflow.utils.file_utils import local_file_uri_to_path

MODELS = "models"
META = "meta.yaml"


def now():
    return int(time.time() * 1000)


def read_tags(folder, kind):
    folder = os.path.join(folder, "tags")
    tags = []
    for place, _, names in os.walk(folder):
        for name in sorted(names):
            path = os.path.join(place, name)
            with open(path, encoding="utf-8") as file:
                tags.append(kind(os.path.relpath(path, folder), file.read()))
    return tags


def write_text(path, text):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=os.path.dirname(path), prefix=".")
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(partial, path)


def write_meta(folder, meta):
    write_text(os.path.join(folder, META), yaml.safe_dump(meta, default_flow_style=False, allow_unicode=True))


def read_meta(folder):
    """None where there is no such model or version."""
    try:
        with open(os.path.join(folder, META), encoding="utf-8") as file:
            return yaml.safe_load(file)
    except (FileNotFoundError, NotADirectoryError):
        return None


def publish(folder, meta, tags):
    """Makes the folder with all that is in it at once. False if it is there already."""
    os.makedirs(os.path.dirname(folder), exist_ok=True)
    partial = tempfile.mkdtemp(dir=os.path.dirname(folder), prefix=".")
    try:
        os.chmod(partial, 0o755)
        write_meta(partial, meta)
        for tag in tags or []:
            write_text(os.path.join(partial, "tags", tag.key), str(tag.value))
        os.rename(partial, folder)
        return True
    except OSError:
        if not os.path.isdir(folder):
            raise
        return False
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def conditions(filter_string, of_older_versions):
    """As the store in a database of the same MLflow has them."""
    if hasattr(search_utils, "SearchModelUtils"):  # since 1.27
        return search_utils.SearchModelUtils.parse_search_filter(filter_string)
    return getattr(search_utils.SearchUtils, of_older_versions)(filter_string)


def matches(value, comparator, wanted):
    if comparator in ("LIKE", "ILIKE"):
        pattern = "".join({"%": ".*", "_": "."}.get(c, re.escape(c)) for c in wanted)
        flags = re.DOTALL | (re.IGNORECASE if comparator == "ILIKE" else 0)
        return re.fullmatch(pattern, value, flags) is not None
    known = {"=": lambda: value == wanted, "!=": lambda: value != wanted, "IN": lambda: value in wanted}
    if comparator not in known:
        raise MlflowException("Invalid comparator: {}".format(comparator), INVALID_PARAMETER_VALUE)
    return known[comparator]()


def fits(entity, parsed):
    for condition in parsed:
        key = {"source_path": "source"}.get(condition["key"], condition["key"])
        value = entity.tags.get(key) if condition.get("type") == "tag" else getattr(entity, key)
        if value is None or not matches(value, condition["comparator"], condition["value"]):
            return False
    return True


class FileStore(AbstractStore):
    def __init__(self, store_uri=None, **_):
        super().__init__()
        self._models = os.path.join(local_file_uri_to_path(store_uri or "mlruns"), MODELS)

    # Registered models.

    def _model_folder(self, name):
        validation._validate_model_name(name)
        if name in (".", "..") or "/" in name or ":" in name:
            raise MlflowException("Invalid model name '{}': it must not have '/' or ':'".format(name), INVALID_PARAMETER_VALUE)
        return os.path.join(self._models, name)

    def _model_meta(self, name):
        meta = read_meta(self._model_folder(name))
        if meta is None:
            raise MlflowException("Registered Model with name={} not found".format(name), RESOURCE_DOES_NOT_EXIST)
        return meta

    def _change_model(self, name, changes):
        write_meta(self._model_folder(name), dict(self._model_meta(name), last_updated_timestamp=now(), **changes))
        return self.get_registered_model(name)

    def create_registered_model(self, name, tags=None, description=None):
        folder, time_ = self._model_folder(name), now()
        for tag in tags or []:
            validation._validate_registered_model_tag(tag.key, tag.value)
        meta = {"aliases": {}, "creation_timestamp": time_, "description": description, "last_updated_timestamp": time_, "name": name}
        if not publish(folder, meta, tags):
            raise MlflowException("Registered Model (name={}) already exists.".format(name), RESOURCE_ALREADY_EXISTS)
        return self.get_registered_model(name)

    def update_registered_model(self, name, description):
        return self._change_model(name, {"description": description})

    def rename_registered_model(self, name, new_name):
        self._model_meta(name)
        if os.path.exists(self._model_folder(new_name)):
            raise MlflowException("Registered Model (name={}) already exists.".format(new_name), RESOURCE_ALREADY_EXISTS)
        os.rename(self._model_folder(name), self._model_folder(new_name))
        for version in self._versions(new_name):
            self._change_version(new_name, version, {"name": new_name})
        return self._change_model(new_name, {"name": new_name})

    def delete_registered_model(self, name):
        self._model_meta(name)
        shutil.rmtree(self._model_folder(name))

    def get_registered_model(self, name):
        meta = self._model_meta(name)
        return RegisteredModel(name, meta["creation_timestamp"], meta["last_updated_timestamp"], meta["description"], self.get_latest_versions(name),
                               read_tags(self._model_folder(name), RegisteredModelTag))

    def _all_models(self):
        names = sorted(os.listdir(self._models)) if os.path.isdir(self._models) else []
        named = ((name, read_meta(os.path.join(self._models, name))) for name in names)  # what is still being made has another name
        return [self.get_registered_model(name) for name, meta in named if meta and meta["name"] == name]

    def list_registered_models(self, max_results, page_token):
        return self.search_registered_models(max_results=max_results, page_token=page_token)

    def search_registered_models(self, filter_string=None, max_results=100, order_by=None, page_token=None):
        parsed = conditions(filter_string, "parse_filter_for_registered_models")
        found = [model for model in self._all_models() if fits(model, parsed)]
        for clause in reversed(order_by or []):
            key, ascending = search_utils.SearchUtils.parse_order_by_for_search_registered_models(clause)
            found.sort(key=lambda model: model.name if key == "name" else model.last_updated_timestamp, reverse=not ascending)
        return PagedList(*search_utils.SearchUtils.paginate(found, page_token, max_results))

    def get_latest_versions(self, name, stages=None):
        wanted = {get_canonical_stage(stage) for stage in stages or ALL_STAGES}
        self._model_meta(name)
        latest = {}
        for version in self._versions(name):
            found = self.get_model_version(name, version)
            latest[found.current_stage] = found
        return [version for stage, version in latest.items() if stage in wanted]

    def set_registered_model_tag(self, name, tag):
        validation._validate_registered_model_tag(tag.key, tag.value)
        self._model_meta(name)
        write_text(os.path.join(self._model_folder(name), "tags", tag.key), str(tag.value))

    def delete_registered_model_tag(self, name, key):
        validation._validate_tag_name(key)
        self._model_meta(name)
        self._remove(os.path.join(self._model_folder(name), "tags", key))

    # Their versions.

    def _version_folder(self, name, version):
        validation._validate_model_version(version)
        return os.path.join(self._model_folder(name), "version-{}".format(int(version)))

    def _versions(self, name):
        found = (re.fullmatch("version-([0-9]+)", entry) for entry in os.listdir(self._model_folder(name)))
        return sorted(int(match.group(1)) for match in found if match)

    def _version_meta(self, name, version):
        meta = read_meta(self._version_folder(name, version))
        if meta is None:
            raise MlflowException("Model Version (name={}, version={}) not found".format(name, version), RESOURCE_DOES_NOT_EXIST)
        return meta

    def _change_version(self, name, version, changes):
        write_meta(self._version_folder(name, version), dict(self._version_meta(name, version), last_updated_timestamp=now(), **changes))
        return self.get_model_version(name, version)

    def create_model_version(self, name, source, run_id=None, tags=None, run_link=None, description=None):
        for tag in tags or []:
            validation._validate_model_version_tag(tag.key, tag.value)
        self._model_meta(name)
        time_ = now()
        meta = {"aliases": [], "creation_timestamp": time_, "current_stage": STAGE_NONE, "description": description, "last_updated_timestamp": time_,
                "name": name, "run_id": run_id, "run_link": run_link, "source": source, "status": "READY", "status_message": None,
                "storage_location": source, "user_id": None}
        version = max(self._versions(name), default=0) + 1
        while not publish(self._version_folder(name, version), dict(meta, version=version), tags):
            version += 1
        self._change_model(name, {})
        return self.get_model_version(name, version)

    def update_model_version(self, name, version, description):
        return self._change_version(name, version, {"description": description})

    def transition_model_version_stage(self, name, version, stage, archive_existing_versions):
        stage = get_canonical_stage(stage)
        if archive_existing_versions and stage not in DEFAULT_STAGES_FOR_GET_LATEST_VERSIONS:
            raise MlflowException("Model versions cannot be archived for the stage '{}': it must be one of {}".format(
                stage, DEFAULT_STAGES_FOR_GET_LATEST_VERSIONS), INVALID_PARAMETER_VALUE)
        self._version_meta(name, version)
        for other in self._versions(name) if archive_existing_versions else []:
            if other != int(version) and self._version_meta(name, other)["current_stage"] == stage:
                self._change_version(name, other, {"current_stage": STAGE_ARCHIVED})
        self._change_model(name, {})
        return self._change_version(name, version, {"current_stage": stage})

    def delete_model_version(self, name, version):
        self._version_meta(name, version)
        shutil.rmtree(self._version_folder(name, version))
        self._change_model(name, {})

    def get_model_version(self, name, version):
        meta = self._version_meta(name, version)
        tags = read_tags(self._version_folder(name, version), ModelVersionTag)
        names = ("description", "user_id", "current_stage", "source", "run_id", "status", "status_message", "run_link")
        return ModelVersion(name, meta["version"], meta["creation_timestamp"], meta["last_updated_timestamp"], tags=tags,
                            **{key: meta[key] for key in names})

    def get_model_version_download_uri(self, name, version):
        return self._version_meta(name, version)["source"]

    def search_model_versions(self, filter_string):
        parsed = conditions(filter_string, "parse_filter_for_model_versions")
        versions = (self.get_model_version(model.name, version) for model in self._all_models() for version in self._versions(model.name))
        return PagedList([version for version in versions if fits(version, parsed)], None)

    def set_model_version_tag(self, name, version, tag):
        validation._validate_model_version_tag(tag.key, tag.value)
        self._version_meta(name, version)
        write_text(os.path.join(self._version_folder(name, version), "tags", tag.key), str(tag.value))

    def delete_model_version_tag(self, name, version, key):
        validation._validate_tag_name(key)
        self._version_meta(name, version)
        self._remove(os.path.join(self._version_folder(name, version), "tags", key))

    @staticmethod
    def _remove(path):
        if os.path.isfile(path):
            os.remove(path)


def is_worth_telling(record):
    """MLflow 1 takes the registry's folder for an experiment, passes it over and prints a traceback."""
    return not (str(record.msg).startswith("Malformed experiment '%s'") and record.args[:1] == (MODELS,)
                or str(record.msg).startswith("Malformed experiment '{}'".format(MODELS)))


logging.getLogger().addFilter(is_worth_telling)
# An entry point cannot be named after the scheme of a plain path, which is "".
utils._get_store_registry().register("", FileStore)
