"""Which languages have which small words; written by `benchmarks/tongues.py`.

647 words. A part is a line of languages, then rows of words with the languages that have
each. The words of a part share a code, which stands for the part's languages; those of the first
part are in `neighbours_table.py` and have codes of their own, those of the last have none.
"""

# Long rows, as the script writes them.
# ruff: noqa: E501

from __future__ import annotations

PARTS = """
-
af an ast az br ca da en eo es eu fr gl is li nds nl no oc sv tr wa: en
af an ast bs cs eo es fi fr fur gl hr ia it nso oc pt ro sl sq sv xh: se
af an da en ga gd gl nds pt zh: as
af ast bs cs ga gd gl hr nl nso pl pt sk sl tl xh: na
af ast de en fur gd sk sl vi wa: so
af az de en fur ga ia it li nds nl sc sl sv vi zh: in
af br nds nl: het
af cs da en lg no pl sk sv zh: by
af cy en ga gd hu li nds nl zh: is
af da is nl: af
af da nl no sv: om
af de en li nds nl: die
af de en nl: was
af de pl sk: nie
af ca en es fr hu li nl: van
af en is li nl zh: of
af ca cs es fr fur gl hr hu ia it ku li nl oc pl pt ro: te
af nl: voor
an ast br ca cy es fr fur gl ia it lv nds oc ro: un
an ast ca da en eo es fr fur ga gl hu ia ku li nds nl no oc pt ro sc sv tr: de
an ast ca en eo es fr fur it nso oc ro: la
an ast ca es gl oc pt: dos
an ast ca es it oc: una
an ast es gl: pero
an ast es gl ia pt: como
an ast es gl nl oc: los
an ca en es et fi fur ga gd gl lg lv pt tr wa zh: no
an cy en gd gl pt: os
an en fr gd: has
an en sq zh: it
an de es nl oc: las
ast br ca en eo es fur ia it nds nl oc ro wa: al
ast ca da es fr nl wa: les
ast ca eo es hu wa: el
ast es ga hu pt: más
az br bs crh de eo es eu gl hr it pt sl tr: da
az crh da en et fr lg no wa: et
az crh sq tr uz: bir
br de en ga gd ku zh: an
bs crh eo fr hr hu ku lg lt sl tr xh: ne
bs cs en ga gd gl pl pt sk sl sq wa: do
ca cs da de en eo es et eu fi fr ga hr hu id it lg nl no pl pt ro sk sl sv tr vi zh: only
ca de: eines
ca de fr fur nds wa: des
ca fr: nous
crh cs es ku tr: ve
bs crh hr id ms nl sl tr uz: dan
crh pl tr: ile
cs da de en es et fi fr ga id it nl pl pt sv tr zh: if
cs da en hr lv nds no pl sk sl zh: to
cy da en no tl zh: at
da de en eu ga no sv tr: den
da de nds nl: der
da de no sv: dem
da en et lg pl sk sl zh: from
da en eu fr no sv: du
da en nl no sv: over
da en no pt zh: for
da en zh: have then
da is no: og til
da li no sv: det
da no: ikke være
da no sl sv: med
da nl no sv: som
da no sv: ett på
de: auch auf dann durch einem einen oder sich sind unter von wird zur über
de en fr nl pt sv zh: when
de en nds: ist
de en zh: will
de es nds pl: zu
de ga gd nds: nach
de gl nds pt: das
de li: eine
de li nds: mit
de li nl: wie
de ms: zum
de en nds: im
de nds: nicht und wenn
de nds nl: werden
en: about because been but could how its these they where whether who would
en es et fi fr wa zh: on
en es fr ga gd ia it nso xh: le
en fr: pour
en fr nds sv zh: or
en fr nl sv zh: can
en ga: while
en hu: most
en hu ku lt nso xh zh: be
en ku: were
en lg nl pl xh: we
en ms nl: had
en ro zh: are
en sk sl zh: than
en sl zh: more
en tl zh: may
en tr zh: not
en xh: into
en zh: after and should that the their there this what which with your
es: luego muy ustedes
es gl pt: está
es gl pt ro: este
es gl pt sq tl: para
fr: aussi aux avec ces cette dans leur vous
fr fur: une
az fr fur it tr: il
fr gl pt: mais
fr wa: est sont
fur id it ku ms nso tl wa: di
fur it: che
gl pt: uma
ia it pt: quando
it: anche della delle gli nella perché più questo sono
it pt: sua
nds nl: een ook
nds sv: för
nl: naar niet wordt zijn
no sv: av
pl: dla jest które oraz przez się
pt: não pelo são também você
ro: pentru sunt și
sv: att från och är
sv wa: inte
tr: değil için olarak

de
cy de: wir
cy de en ga gd: am
de: aber aus bis damit daß diese dieser einer gegen haben ihr ihre kann können ohne seine sowie weil welche wurde wurden zwischen
de en: hat
de nds: dass dieses für kein keine mehr sein

nl
af li nl: aan dit
af nl: geen hoe maar meer met moet omdat onder tussen uit wanneer wat
li nl: deze door
nl: alleen hebben heeft hij kunnen nog wel wij worden zij zoals zonder
nl sq: bij

en
cy en: did
en: against although being between both does each every his however might such them those through upon within
en ga: until
en zh: before must other unless without you

fr
en fr: tout
fr: après avant avoir comme donc elle fait ils leurs lorsque même notre où peut sans sous tous toute très votre être
fr fur lv: par

pl
pl: być czy gdy jego jeśli już która który których lub może można przed przy są także tego tej tylko tym został że

it
ast it: nel
en fur it wa: come
fur it: dopo ogni
it: agli dalla degli dei dello dove essere può quello questa questi senza sulla suo tutti viene

sv
nds sv: över
sv: denna dessa detta där genom hade hur jag mellan mycket när också sina sitt ska till vad vid

id
id: bisa
id ms: adalah akan atau dalam dari dengan ini itu jika oleh pada tidak untuk yang

ro
en ro: care
fur ro: pe prin
ro: această acest cea cu că dacă după fără nu poate în între

cs
cs: být jen již jsou která které který může nebo není podle pokud při také

fi
cy et fi: ei
et fi: ole
fi: että joka kuin mukaan mutta myös niin ovat sekä tämä voi

vi
gd vi: cho
vi: các có của không là một này trong và với được để

pt
en pt: em
ga gd pt: suas
pt: depois ela isso já lhe muito pela pelos umas uns

da
da: bliver bruges gennem havde hvad jeg meget mellem sine uden
da en: sit

tr
az tr: daha olan sonra
crh tr: hem
ga tr: ama
tr: ancak gibi göre tüm veya çok

da no
da no: denne dette disse hvis hvor når også skal ved

es
ast es: cuando hasta otra puede
es: donde fue otro también unas

hu
hu: az csak egy hogy meg mint már még vagy

ca
ca: aquest els més però seva són també

-
af an ca nl oc ro wa: tot
af ast ca de en eo ia it li lt oc: per
af cs nds nl: dat
af da de it nl no: alle
af da li nds nl pt: op
af da nl no sv: kan
af en fr ia ro sq: plus
af fr oc: pas
an ast az ca cs es fr fur it no sq tl wa: si
an ast br en es fr fur gl ia oc tr: son
an ast ca es fr gl ia oc pt: que
an ast ca es gl oc pt: cada
an ast ca es gl pt: sobre
an ast en es gl ia it vi: con
an ast eo es gl pt: por
an ast es gl pt: porque
an ast pl sl sv: ta
an br ca en es hu ia it sv: ha
an ca es fr gl oc pt: entre
an ca es ia no: han
an da en es ga gd ia no sv: sin
an en gd oc pt: mas
an es gl ia it oc xh: lo
ast br cy ga gl lt nl pt ro sk vi: ca
ast ca es gl ia ku pt sv: ser
ast ca es ia it oc wa: del
ast de fr ro: au
ast eo es: estos
ast es gl pt: esta
ast es gl pt wa: nos
ast fr fur gl ia it zh: non
ast gl pt: foi
az crh de en fr gd it nl pt ro tr zh: bu
az da de en fr id is it lv nl no pl pt sv tr zh: var
az en es ku lg nso tr: ya
az en pl tr vi: mi
br cy da is nl no: er
br eu hu lg: ez
br fur gd ia it pl tl vi: ma
bs cs cy hr pl sk sl: nad
bs cs da de en es fr hr id lt nl pl pt ro sk sl sv tr wa zh: po
bs cs eo fur hr nds sk sl: je
bs cs hr lv pl sk: bez
bs cs hr pl sk sl: od pod za
bs cs pl: jako
bs es hr: unos
bs fr ga gd nso pl sc sk tl: sa
bs it ro: prima
ca de es fr ia li oc: es
ca de et fi lv oc: ja
ca de nds nl oc: als
ca en pt: com
ca gl pt: seu seus
ca hu: és
ca nl pl ro: cel
ca oc: amb aquesta dels
crh da en ku no tr: her
crh sl tr: kadar
cs de en eo ia sc: pro
cs eo id lg ms nso: ke
cs gd gl pl pt wa: co
cs id ms pl sk: tak
cs lg nl pl xh: ze
cs pl: jak
cs pl ro sk: ale
cs pl sk: jej
cs sk sl: že
cy en eo es fr sl sv tl: ni
cy en eo et fi fur ga hu ia it lg lt ro sl: ai
cy eo fur it vi: tra
da de eo hr it no pl sv tr vi zh: vi
da en id nl no sv: men
da en no sv: under
da eo fi no: kun
da it no: fra
da ku ro sv: din
da no sv: eller har skulle så
da sv: blev efter
de en lt: bei
de eo: nur
de is nds pt: um
de li nds no: ein
de nds pl: sie
de nl: andere noch
de ro: vor
en eo fr gl ia: sur
en eo it lv ms: ed
en es vi: hay
eo es: estas
eo fi gl: sen
eo it: stato
es gl: están
es gl ia pt: desde
es gl pt: todo todos
es it: uno
es oc ro: sus
et fi is it sv: alla
et fi lt sc: tai
fi lt oc ro: jos
fr fur ro: ce
fr gl pt wa: ou
fr it: qui
fr it wa: ci
fr oc wa: ont
fr ro: lui
fr tr: ses
fur it oc: sul
fur it tr: dal
gd gl pt: nas
gl nl pl tr: ten
gl nso pt: ao
gl pt: aos até onde
hu is pt: sem
hu pt: nem
is no sv: utan
is nso ro sv: bara
it lt: nei
no sv: blir
oc ro tl: mai
pl sk: ich
pt ro tr: ele
pt sl: tem
ro vi: sau
"""
