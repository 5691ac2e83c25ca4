"""Write which of Wikipedia's sentences each task is made of, as a digest.

    python -m pipeline_lib.stages.digest_wikipedia

Reads the manifest of data/wikipedia/train; writes data/digests/wikipedia/<task>.json, on which the stage fetch_data
depends: so a new corpus runs it again only for tasks that read it.
"""

from pipeline_lib.base.entry import run_stage
from pipeline_lib.base.files import fresh_folder, write_json
from pipeline_lib.base.layout import Layout
from pipeline_lib.params import load_params
from pipeline_lib.params.stage_settings import reads_wikipedia
from pipeline_lib.shards.shard_sets import read_manifest


def main() -> None:
    """Write which of Wikipedia's sentences each task is made of, as a digest."""
    params, layout = load_params(), Layout()
    fresh_folder(layout.all_read_by_fetching)
    for name, task in params.tasks.items():
        folders = [layout.wikipedia("train")] if reads_wikipedia(task) else []
        digests = {folder.as_posix(): read_manifest(folder).digest for folder in folders}
        write_json(layout.read_by_fetching(name), digests)


if __name__ == "__main__":
    run_stage(main)
