"""The typed schema of ``params.yaml``.

Unknown keys are rejected.  A key either has to be given or, left out, means "not used": DVC would not notice another
default changed in code, and stale results would be kept.  Every stage loads its parameters through
:func:`load_params`; ``distill check`` does the same before anything expensive starts.
"""

from pipeline_lib.base.kinds import register_kind
from pipeline_lib.base.kinds.kind import Range
from pipeline_lib.params.base import Select
from pipeline_lib.params.encoders import STARTS, Encoder, GeneralEncoder, SentenceVectors
from pipeline_lib.params.extensions import import_extensions
from pipeline_lib.params.file import Params, check_params, load_params
from pipeline_lib.params.methods import (
    JOINT_OBJECTIVE,
    AnyOptimiser,
    Fitting,
    Joint,
    Method,
    Objective,
    Optimiser,
    register_objective,
)
from pipeline_lib.params.models import (
    TRAINED_ALONE,
    AnswerFiles,
    FineTuning,
    Finished,
    HubModel,
    LocalModel,
    ModelSource,
    ModelVectors,
    PackageModel,
    PackageParts,
    Probe,
    Refining,
    Scored,
    States,
    Teacher,
    Tuning,
    VectorFile,
    Vocabulary,
)
from pipeline_lib.params.retrieval import EncoderSystem, RankingSystem, StudentSystem, TeacherOrder
from pipeline_lib.params.students import (
    ARCHITECTURES,
    BERT,
    AnyStudent,
    Reads,
    StudentSettings,
    holds_students,
    register_settings,
    student_settings,
)
from pipeline_lib.params.task_sources import GlueFolder, HubDataset, NeighbourPairs, OwnFiles, PackageFiles, Source
from pipeline_lib.params.tasks import UNLABELLED, SplitParams, Task
from pipeline_lib.params.texts import (
    CorpusFiles,
    CorpusSource,
    HubCorpus,
    PackageCorpus,
    Recipe,
    Splitter,
    Tagger,
    Wikipedia,
)
