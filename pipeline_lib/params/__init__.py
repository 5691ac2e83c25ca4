"""The typed schema of ``params.yaml``.

Unknown keys are rejected.  A key either has to be given or, left out, means "not used": DVC would not notice another
default changed in code, and stale results would be kept.  Every stage loads its parameters through
:func:`load_params`; ``distill check`` does the same before anything expensive starts.
"""

from pipeline_lib.base.kinds import register_kind
from pipeline_lib.base.kinds.kind import Range
from pipeline_lib.params.base import Select
from pipeline_lib.params.encoders import (
    STARTS,
    CatalogueRow,
    Encoder,
    GeneralEncoder,
    SentenceVectorFiles,
    SentenceVectors,
)
from pipeline_lib.params.file import Params, check_params, load_params
from pipeline_lib.params.joint import JOINT_OBJECTIVE, Joint
from pipeline_lib.params.methods import Method, Objective, Optimiser, TeacherRuns, register_objective
from pipeline_lib.params.models import (
    AnswerFiles,
    Average,
    FineTuning,
    Finished,
    HubModel,
    LocalModel,
    ModelSource,
    ModelVectors,
    PackageModel,
    PackageParts,
    Precision,
    Precompute,
    Refining,
    States,
    Teacher,
    TrainingPrecision,
    Tuning,
    VectorFile,
    Vocabulary,
)
from pipeline_lib.params.retrieval import (
    EncoderSystem,
    ModelSystem,
    RankingSystem,
    RerankedSystem,
    Retrieval,
    Similarity,
    StudentSystem,
    TaskPairs,
    TeacherOrder,
)
from pipeline_lib.params.students import (
    ARCHITECTURES,
    BERT,
    CNN,
    AnyStudent,
    BiAttentive,
    BiLSTM,
    Linear,
    Reads,
    Static,
    StudentSettings,
    TransformerLayers,
    holds_students,
    register_settings,
    student_settings,
)
from pipeline_lib.params.task_sources import (
    GlueFolder,
    HubDataset,
    NeighbourPairs,
    OwnFiles,
    PackageFiles,
    Source,
    Split,
)
from pipeline_lib.params.tasks import POOL, UNLABELLED, AugmentParams, SplitParams, Task
from pipeline_lib.params.transfer import Recipe, Tagger
from pipeline_lib.params.wikipedia import (
    CorpusFiles,
    CorpusSource,
    HubCorpus,
    PackageCorpus,
    Splitter,
    Validation,
    Wikipedia,
)
