"""Articles to paragraphs of plain text: wikitext by mwparserfromhell, the rest line by line.

What is not running text is left out: headings, lists, tables, references, files, categories,
comments.  A template inside a sentence stands for words that cannot be known without expanding it,
as a formula does; both leave :data:`HOLE`, so that the sentence can be left out as a whole.
"""

import html
import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from pipeline_lib.base.errors import PotstillError

_NAMESPACES = """
file image media category
archivo arquivo archief attēls berkas bestand afbeelding bild billede datei datoteka datoteko
dosiero dosya resim fail failas vaizdas ficheiro imagem fichier fil fișier fişier imagine fitxer
imatge fitxategi irudi fájl kép hình tập|tin gambar immagine imaxe mynd kuva tiedosto pilt plik
grafika slika skrá soubor súbor obrázok íomhá delwedd skeudenn εικόνα αρχείο датотека слика
изображение файл зображення выява малюнак сурет պատկեր
ფაილი სურათი קובץ תמונה ملف صورة پرونده تصویر چتر
चित्र छवि चित्र ছবি চিত্র படிமம் దస్త్రం ಚಿತ್ರ ചിത്രം ภาพ ไฟล์ រូបភាព ፋይል ファイル 画像 文件 檔案
图像 圖像 图片 圖片 파일 그림
categoria categoría catégorie categorie kategorie kategoria kategooria kategori kategorija
kategória kategorijo kategorio kategorya kateqoriya kategoriya luokka flokkur catagóir categori
rummad thể|loại κατηγορία категорија категория категорія катэгорыя санат կատեգորիա კატეგორია קטגוריה
تصنيف رده زمرہ श्रेणी वर्ग বিষয়শ্রেণী பகுப்பு వర్గం ವರ್ಗ വർഗ്ഗം หมวดหมู่ カテゴリ 分类 分類 분류
"""
"""Files and categories, in English, which every wiki knows, and as large wikis call them; ``|`` stands for a space."""
_LANGUAGES = """
aa ab ace ady af ak als alt am ami an ang ann anp ar arc ary arz as ast atj av avk awa ay az azb ba
ban bar bat-smg bbc bcl bdr be be-tarask be-x-old bew bg bh bi bjn blk bm bn bo bpy br bs btm bug
bxr ca cbk-zam cdo ce ceb ch cho chr chy ckb co cr crh cs csb cu cv cy cz da dag de dga din diq dk
dsb dtp dty dv dz ee el eml en eo epo es et eu ext fa fat ff fi fiu-vro fj fo fon fr frp frr fur fy
ga gag gan gcr gd gl glk gn gom gor got gpe gsw gu guc gur guw gv ha hak haw he hi hif ho hr hsb ht
hu hy hyw hz ia iba id ie ig igl ii ik ilo inh io is it iu ja jam jbo jp jv ka kaa kab kbd kbp kcg
kg kge ki kj kk kl km kn knc ko koi kr krc ks ksh ku kus kv kw ky la lad lb lbe lez lfn lg li lij
lld lmo ln lo lrc lt ltg lv lzh mad mai map-bms mdf mg mh mhr mi min mk ml mn mni mnw mo mos mr mrj
ms mt mus mwl my myv mzn na nah nan nap nb nds nds-nl ne new ng nia nl nn no nov nqo nr nrm nso nup
nv ny oc olo om or os pa pag pam pap pcd pcm pdc pfl pi pih pl pms pnb pnt ps pt pwn qu rm rmy rn ro
roa-rup roa-tara rsk ru rue rup rw sa sah sat sc scn sco sd se sg sgs sh shi shn shy si simple sk
skr sl sm smn sn so sq sr srn ss st stq su sv sw syl szl szy ta tay tcy tdd te tet tg th ti tig tk
tl tly tn to tok tpi tr trv ts tt tum tw ty tyv udm ug uk ur uz ve vec vep vi vls vo vro wa war wo
wuu xal xh xmf yi yo yue za zea zgh zh zh-cfr zh-classical zh-cn zh-min-nan zh-tw zh-yue zu
"""
"""The languages of Wikipedia, by the prefixes of links to them."""
NAMESPACES = {name.replace("|", " ") for name in _NAMESPACES.split()}
LANGUAGES = {*_LANGUAGES.split()}


def shows_nothing(title: str) -> bool:
    """Return whether a link shows a file, sorts the article, or leads to a language (in small letters)."""
    prefix, colon, _ = title.partition(":")
    name = " ".join(prefix.replace("_", " ").split())
    return bool(colon) and (name.lower() in NAMESPACES or name in LANGUAGES)


HOLE = "\N{OBJECT REPLACEMENT CHARACTER}"
"""Marks where words are missing from the text."""

_SILENT = re.compile(
    r"(cite|citation|cit|sfn|sfnp|efn|refn|harv|harvnb|rp|r|cn|citation needed|fact|clarify|when|"
    r"who|which|by whom|where|why|dead link|page needed|verify|vague|dubious|according to whom|"
    r"update|main|see also|further|portal|coord|clear|toc|anchor|short description|use|pp|about|"
    r"other uses|redirect|hatnote|infobox|sidebar|reflist|notelist|dn|better source|"
    r"failed verification|unreliable source|full citation needed|specify|ref|multiple image)\b.*",
    re.IGNORECASE | re.DOTALL,
)
"""Names of templates that leave no gap in the words around them."""
_SPOKEN = {"lang": -1, "transl": -1, "nowrap": 0, "nobr": 0, "abbr": 0, "small": 0}
"""Templates that show one of their unnamed arguments as it is, and which one."""
_SIGNS = {"ndash": "–", "mdash": "—", "snd": " – ", "spnd": " – ", "spaced ndash": " – ", "'": "'"}
_NO_TEXT = {
    "ref", "references", "table", "gallery", "timeline", "imagemap", "syntaxhighlight", "source",
    "score", "hr", "ol", "ul", "dl",
}  # fmt: skip
_GAPS = {"math", "chem", "ce", "code", "hiero", "poem"}
_BLOCKS = {"p", "div", "center", "blockquote"}
_LISTS = {"li", "dt", "dd"}
_LIST = "\x00"


def wikitext_paragraphs(wikitext: str) -> list[str]:
    """Return the running text's paragraphs, in order; links appear as they are displayed."""
    import mwparserfromhell
    from mwparserfromhell.parser import ParserError

    try:
        nodes = mwparserfromhell.parse(wikitext).nodes
    except ParserError as error:
        raise PotstillError(f"wikitext that cannot be parsed ({error})") from error
    lines = [line.strip() for line in "".join(_plain(nodes)).split("\n")]
    # An empty line, a heading, a list or a template on its own line ends a paragraph; other line ends are spaces.
    groups = groupby(lines, key=lambda line: not _LIST_OR_EMPTY.match(line))
    return _tidied(" ".join(group) for is_text, group in groups if is_text)


_LIST_OR_EMPTY = re.compile(rf"{_LIST}|[\s{HOLE}]*$")


def plain_paragraphs(text: str) -> list[str]:
    """Return the lines that hold text."""
    return _tidied(text.split("\n"))


def _tidied(texts: Iterable[str]) -> list[str]:
    """Return what is left once extra spaces, empty brackets and stray quote marks are removed."""
    tidied = []
    for text in texts:
        text = _EMPTY_BRACKETS.sub("", _QUOTE_MARKS.sub("", text))
        text = _BLANKS.sub(" ", text).strip()
        if text:
            tidied.append(text)
    return tidied


_QUOTE_MARKS = re.compile("'{2,}")
_EMPTY_BRACKETS = re.compile(r"\s?[(\[][\s,;:]*[)\]]")
_BLANKS = re.compile(r"\s+")


def _plain(nodes: Iterable[Any]) -> Iterator[str]:
    from mwparserfromhell import nodes as kinds

    for node in nodes:
        if isinstance(node, kinds.Text):
            # Where markup is broken the parser leaves entities as they are.
            yield html.unescape(str(node.value))
        elif isinstance(node, kinds.Wikilink):
            yield from _link(node)
        elif isinstance(node, kinds.Template):
            yield from _template(node)
        elif isinstance(node, kinds.Tag):
            yield from _tag(node)
        elif isinstance(node, kinds.HTMLEntity):
            yield node.normalize()
        elif isinstance(node, kinds.ExternalLink):
            yield from _plain(node.title.nodes) if node.title is not None else [HOLE]
        elif isinstance(node, kinds.Heading):
            yield "\n\n"
        elif isinstance(node, kinds.Argument):
            yield HOLE


def _link(node: Any) -> Iterable[str]:
    title = str(node.title).strip()
    if shows_nothing(title):
        return []
    return _plain(node.text.nodes) if node.text is not None else [title.lstrip(":")]


def _template(node: Any) -> Iterable[str]:
    name = str(node.name).strip().replace("_", " ").lower()
    if name in _SIGNS:
        return [_SIGNS[name]]
    if name in _SPOKEN:
        shown = [parameter for parameter in node.params if not parameter.showkey]
        return _plain(shown[_SPOKEN[name]].value.nodes) if shown else []
    return [] if _SILENT.fullmatch(name) else [HOLE]


def _tag(node: Any) -> Iterable[str]:
    tag = str(node.tag).strip().lower()
    if tag in _NO_TEXT:
        return []
    if tag in _GAPS:
        return [HOLE]
    if tag in _LISTS:
        # The node is only the marker; the item's words follow up to the end of the line.
        return [_LIST]
    if tag == "br":
        return [" "]
    inner = _plain(node.contents.nodes) if node.contents is not None else []
    return ["\n\n", *inner, "\n\n"] if tag in _BLOCKS else inner
