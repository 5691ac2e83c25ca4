"""References between rows of params.yaml, and settings that cannot be combined."""

from collections.abc import Mapping

from pipeline_lib.base.kinds import KINDS
from pipeline_lib.base.layout import HELDOUT, STATES
from pipeline_lib.params.base import references
from pipeline_lib.params.check_capabilities import check_demands, check_layers
from pipeline_lib.params.encoders import STARTS, Encoder, GeneralEncoder
from pipeline_lib.params.methods import JOINT_OBJECTIVE, Fitting, Joint, Method
from pipeline_lib.params.models import Scored
from pipeline_lib.params.schema import Params
from pipeline_lib.params.tasks import Task

NOUNS = {"tasks": "task ", "transfer": "transfer set "}
"""What a row of a section is called where its key does not say it."""


def check_references(params: Params) -> None:
    """Check that what rows name exists, and that the rows are compatible.

    :raises ValueError: naming the key, what is wrong with it, and the remedy.
    """
    further = {"starts": dict.fromkeys([*STARTS, *params.encoders, *params.joint, *params.methods])}
    for key, name, section in references(dict(params)):
        rows = further.get(section) or getattr(params, section)
        if name not in rows:
            raise ValueError(
                f"{key}: no {NOUNS.get(section, '')}{name!r}; there are {', '.join(rows) or 'none'}. Correct it"
            )
    _check_transfer_sets(params)
    _check_teachers(params)
    _check_encoders(params)
    _check_joint(params)
    _check_methods(params)
    check_demands(params)
    _check_jointly_started(params)
    for name, task in params.tasks.items():
        if task.source.kind == "neighbours" and params.wikipedia is None:
            raise ValueError(
                f"tasks.{name}.source: neighbours are sentences of Wikipedia, and `wikipedia` "
                "is null. Describe a source there, as profiles/tour.yaml does"
            )
    _check_baselines(params)
    if len(set(params.seeds)) < len(params.seeds):
        raise ValueError("seeds: each may appear only once")


def _check_transfer_sets(params: Params) -> None:
    for name, recipe in params.transfer.items():
        if recipe.p_pos and params.tagger.engine == "none":
            raise ValueError(
                f"transfer.{name}.p_pos: words are replaced by others of their part of speech, and "
                "`tagger.engine` is none. Set 0, or name a tagger"
            )
        covered = [task for task_name, task in params.tasks.items() if recipe.covers(task_name)]
        if recipe.unlabelled and not any(task.has_unlabelled for task in covered):
            raise ValueError(
                f"transfer.{name}.unlabelled: none of its tasks has unlabelled texts. Name a file "
                "of them in `source.files.unlabelled` of one, or take the key out"
            )


def _check_teachers(params: Params) -> None:
    for name in params.teachers:
        if name in {*params.methods, HELDOUT, STATES}:
            what = "a row of `methods`" if name in params.methods else "a folder of outputs"
            raise ValueError(f"teachers.{name}: {what} has this name. Choose another")
    refined = [name for name, row in params.teachers.items() if row.tuning.kind == "refined"]
    if sorted(params.refined) != sorted(refined):
        raise ValueError(
            "refined: names each teacher of kind refined once, since DVC needs a list of them. Set "
            f"it to [{', '.join(refined)}]"
        )
    for task, settings in params.tasks.items():
        labelled = settings.learns_from_labels and settings.label_of("dev") is not None
        for name, teacher in params.teachers_of(task).items():
            if teacher.has_layers and not labelled:
                raise ValueError(
                    f"teachers.{name}.tasks: {task} has no labels (`label`) in train and dev to tune and score a model "
                    "on. Leave it out: what it has is a teacher of kind answers or scored"
                )
            if teacher.tuning.kind == "scored":
                _check_scored(f"teachers.{name}.tuning", teacher.tuning, task, settings)
        if not params.teachers_of(task):
            raise ValueError(f"teachers: none knows {task}. Name it in one's `tasks`, or set that to null")


def _check_scored(where: str, tuning: Scored, task: str, settings: Task) -> None:
    if not KINDS[settings.kind].has_probabilities:
        raise ValueError(f"{where}: a language model scores labels, and {task} has numbers. Name other `tasks`")
    if tuning.labels is not None and set(tuning.labels) != set(settings.label_names):
        raise ValueError(f"{where}.labels: says what stands for {', '.join(settings.label_names)}, each once")
    if tuning.examples and not settings.learns_from_labels:
        raise ValueError(f"{where}.examples: {task} has no labels in train to show. Set 0")


def _check_methods(params: Params) -> None:
    starts = {**dict.fromkeys(STARTS), **params.encoders, **params.joint}
    starts |= {name: row for name, row in params.methods.items() if name not in starts}
    for name, method in params.methods.items():
        _check_start(params, f"methods.{name}", method)
        trained = starts[method.start]
        if trained is not None and trained.student != method.student:
            raise ValueError(
                f"methods.{name}.student: {method.student}, but its start {method.start} is "
                f"a {trained.student}. Make them the same"
            )
        if method.optimiser is None:
            _check_taken(params, name, method)
    for name in params.methods:
        _check_baselines_end(params, name)
        if params.row_before(name) and name in (before := params.rows_before(name)):
            circle = " → ".join([name, *before])
            raise ValueError(f"methods.{name}.start: {circle} leads back to the row itself. Name another start")


def _check_start(params: Params, where: str, row: Method | Joint) -> None:
    student = params.students[row.student]
    _check_fitted(params, where, row)
    if student.pretrained and row.start in ("vectors", "random"):
        raise ValueError(
            f"{where}.start: a {student.architecture} student is made of a pretrained model's layers; use model"
        )
    if row.start == "model" and not student.pretrained:
        raise ValueError(
            f"{where}.start: a {student.architecture} student takes no layers of a pretrained "
            "model; use vectors or random"
        )
    if not student.word_vectors and row.start == "vectors":
        raise ValueError(f"{where}.start: a {student.architecture} student has no word vectors; use random")


def _check_fitted(params: Params, where: str, row: Method | Joint | Encoder | GeneralEncoder) -> None:
    """Check that a regression has what fits one, and no other row has it."""
    student, optimiser = params.students[row.student], params.optimisers.get(row.optimiser)
    if student.fitted != isinstance(optimiser, Fitting):
        raise ValueError(
            f"{where}.optimiser: a regression is fitted by `name: lbfgs`, and no other student is. Name another"
        )
    if student.fitted and (not isinstance(row, Method) or row.start != "vectors" or row.objective.needs_states):
        raise ValueError(
            f"{where}.student: {row.student}, a regression, is for `methods`: it starts from vectors, and learns "
            "labels, logits or soft_labels. Name another student"
        )


def _check_taken(params: Params, name: str, method: Method) -> None:
    joint = params.joint.get(method.start)
    if joint is None:
        raise ValueError(
            f"methods.{name}.optimiser: null takes a joint training's student as it is, and "
            f"{method.start} is not one. Name a row of `joint` as its start, or an optimiser"
        )
    for key in ("iterations", "threshold"):
        if getattr(method, key) is not None:
            raise ValueError(
                f"methods.{name}.{key}: without an optimiser the student of {method.start} is "
                "taken as it is. Set null, or name an optimiser"
            )
    if method.objective.weights != JOINT_OBJECTIVE:
        raise ValueError(
            f"methods.{name}.objective: without an optimiser the student is that of "
            f"{method.start}, which learned logits. Give {{logits: 1.0}}, or name an optimiser"
        )


def _check_jointly_started(params: Params) -> None:
    started = {n: m for n, m in params.methods.items() if m.start in params.joint}
    for name, method in started.items():
        joint = params.joint[method.start]
        if method.optimiser is not None:
            continue
        for task in method.tasks or []:
            if task not in joint.tasks:
                raise ValueError(
                    f"methods.{name}.tasks: {method.start} is not trained on task {task}, but "
                    f"on {', '.join(joint.tasks)}. Name some of these, or an optimiser"
                )
        for task in (task for task in params.tasks if name in params.methods_of(task)):
            if method.data != joint.tasks[task]:
                raise ValueError(
                    f"methods.{name}.data: {method.data}, but {method.start} is trained on "
                    f"{joint.tasks[task]} of task {task}, and taken as it is. Name that"
                )


def _check_baselines(params: Params) -> None:
    for name, task in ((m, t) for m in params.methods for t in params.tasks):
        baseline = params.methods[name].baseline
        rows = params.methods_of(task)
        if name in rows and baseline is not None and baseline not in rows:
            raise ValueError(
                f"methods.{name}.baseline: {baseline} is not a row of task {task}: its "
                f"`tasks`, or those of {params.methods[baseline].data}, leave it out"
            )


def _check_baselines_end(params: Params, name: str) -> None:
    chain = [name]
    while (baseline := params.methods[chain[-1]].baseline) is not None:
        if baseline == name:
            raise ValueError(
                f"methods.{name}.baseline: {' → '.join([*chain, name])} leads back to the row "
                "itself. Name an undistilled row, or set null"
            )
        if baseline in chain:
            return  # a cycle further along, which its own rows report
        chain.append(baseline)


def _check_encoders(params: Params) -> None:
    if params.encoders and params.wikipedia is None:
        raise ValueError(
            "wikipedia: null, but encoders are trained on its sentences. Give a source, or set `encoders: {}`"
        )
    for name, encoder in params.encoders.items():
        if name in STARTS:
            raise ValueError(f"encoders.{name}: this name is reserved; take another")
        _check_fitted(params, f"encoders.{name}", encoder)
        if isinstance(encoder, GeneralEncoder):
            _check_general(params, name, encoder)
        elif params.students[encoder.student].sentence_width is None:
            raise ValueError(
                f"encoders.{name}.student: {encoder.student} has no sentence vector of the "
                "teacher's width; use one of architecture bilstm_sra, or a dse with a `width`"
            )
        if encoder.wikipedia is not None and encoder.wikipedia > params.wikipedia.sentences:
            raise ValueError(
                f"encoders.{name}.wikipedia: {encoder.wikipedia}, but wikipedia.sentences "
                f"splits {params.wikipedia.sentences}. Raise that, or set null for all of them"
            )
        if not isinstance(encoder, GeneralEncoder):
            _check_sets(params, f"encoders.{name}", encoder.tasks)


def _check_general(params: Params, name: str, encoder: GeneralEncoder) -> None:
    student = params.students[encoder.student]
    if student.name() != "bert":
        raise ValueError(
            f"encoders.{name}.student: {encoder.student} is a {student.name()}, and general "
            "distillation starts a Transformer at random; use one of architecture bert"
        )
    check_layers(params, f"encoders.{name}", encoder)


def _check_joint(params: Params) -> None:
    for name, joint in params.joint.items():
        if name in STARTS or name in params.encoders:
            raise ValueError(f"joint.{name}: `start: {name}` of a method means something else; take another name")
        _check_start(params, f"joint.{name}", joint)
        _check_sets(params, f"joint.{name}", joint.tasks)
        for task in joint.tasks:
            if params.tasks[task].label_of("dev") is None:
                raise ValueError(
                    f"joint.{name}.tasks: {task} has no labels (`label`) to choose by on dev. "
                    "Leave it out, or train it by itself"
                )


def _check_sets(params: Params, where: str, tasks: Mapping[str, str | None]) -> None:
    for task, recipe in tasks.items():
        if recipe is not None and recipe not in params.recipes_of(task):
            raise ValueError(
                f"{where}.tasks.{task}: no transfer set {recipe!r} of this task; "
                f"there are {', '.join(params.recipes_of(task))}"
            )
