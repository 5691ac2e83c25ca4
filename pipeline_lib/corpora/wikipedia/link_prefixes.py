"""Which links of wikitext show nothing in the text: files, categories, other languages.

A title may have a colon, as "CSI: Miami" does, so that only known prefixes count.
"""

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
    """Return whether a link to this title shows a file, sorts the article, or leads to a language.

    Prefixes of languages are written in small letters: "It: Chapter Two" is a title.
    """
    prefix, colon, _ = title.partition(":")
    name = " ".join(prefix.replace("_", " ").split())
    return bool(colon) and (name.lower() in NAMESPACES or name in LANGUAGES)
