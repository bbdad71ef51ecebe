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
af an ast az br ca da en eo es eu fo fr fy gl is lb li nds nl no oc rm sv tr wa: en
af an ast bs ca cs da eo es fi fr fur fy gl hr hu ia ie it la lb mt nds no nso oc pt ro sl sq sv xh: se
af an da en fr fy ga gd gl nds pt zh: as
af ast bs cs ga gd gl hr nds nl nso pl pt rm sk sl sq sw tl xh: na
af ast de en fo fur gd lb nds sk sl vi wa: so
af az de en fur ga ia ie it la lb li nds nl rm sc sl sv vi zh: in
af br nds nl: het
af ca cs es et fi fr fur fy gl hr hu ia it ku la li lv nl oc pl pt ro: te
af ca en es fr gl hu li nds nl: van
af cs da en fy lg no pl sk sv zh: by
af cy en fy ga gd hu la li nds nl zh: is
af da fy nl no sv: om
af da is nds nl: af
af de en eu la li nds nl: die
af de en fy nds nl pl: was
af de lb nds pl sk: nie
af en fy is li nds nl zh: of
af nl: voor
an ast br ca cy es fr fur gl ia ie it lb lv nds oc rm ro: un
an ast ca da en eo es fr fur fy ga gl hu ia ie ku la lb li nds nl no oc pt ro sc sv tr: de
an ast ca en eo es fr fur ie it no nso oc pt rm ro sw: la
an ast ca es fr gl no oc pt ro sv: dos
an ast ca es it la oc ro: una
an ast es gl: pero
an ast es gl ia pt: como
an ast es gl nl oc: los
an bs ca cs en es et fi fur fy ga gd gl hr hu ie it lb lg lv pl pt sk tr wa zh: no
an ca en es fr gd la rm: has
an cy da en es gd gl la pt: os
an de es nl oc rm: las
an en fy sq zh: it
ast br ca en eo es eu fur fy ia ie it nds nl oc ro tr wa: al
ast bs cs da en hr lv nds no pl sk sl zh: to
ast ca da es fr ie nl wa: les
ast ca eo es hu ro tr wa: el
ast es ga hu pt: más
az br bs crh cs da de eo es eu gl hr it no pl pt rm sk sl tr: da
az ca crh da en et fi fr la lb lg no tr wa: et
az crh sq tr uz: bir
az fr fur ie it mt rm tr: il
br da de en fr ga gd ku la lb nds no ro sv zh: an
bs ca crh cs eo fi fr hr hu ie it ku la lg lt lv ro sl sq tr xh: ne
bs ca cs en es et eu fi fr hr ie pl sk sl tr wa zh: on
bs crh es fy hr id ms mt nl sl tr uz: dan
bs cs en fy ga gd gl lb pl pt sk sl sq wa: do
ca cs da de en eo es et eu fi fr ga hr hu id it lg nl no pl pt ro sk sl sv tr vi zh: only
ca da de es fr fur lb nds nl ro wa: des
ca da nl no sk sv: som
ca de: eines
ca es gl pt ro: este
ca fr: nous
crh cs es ku tr: ve
crh pl tr: ile
cs da de en es et fi fr ga id it nl pl pt sv tr zh: if
cs da de en es eu ga lb nl no sv tr: den
cy da en fo la no tl zh: at
da de en eo eu fo fr fy lb nds no sv: du
da de fo fy lb nds nl no: der
da de lb no sv: dem
da en et lg pl sk sl zh: from
da en ie no pt zh: for
da en ie zh: have
da en nl no sv: over
da en zh: then
da fo ie is no: til
da fo is no: og
da li no sv: det
da no: ikke være
da no sl sv: med
da no sv: ett på
de: auch auf durch einem einen sich sind unter von wird über
de en fr nl pt sv zh: when
de en nds: im ist
de en nds zh: will
de es gl nds pt: das
de es lb nds pl: zu
de ga gd nds: nach
de lb: zur
de lb ms: zum
de lb nds: dann oder
de li: eine
de li nds: mit
de li nl: wie
de nds: nicht und wenn
de nds nl: werden
en: about because but could how its these they where whether who would
en es fr ga gd hu ia it mt nso ro sq xh: le
en fr: pour
en fr nds ro sv zh: or
en fr nl sv zh: can
en fy lg nl pl xh: we
en fy ms nds nl: had
en ga: while
en hu: most
en hu ku lt nso sv xh zh: be
en ku: were
en nl: been
en ro zh: are
en sk sl zh: than
en sl zh: more
en tl zh: may
en tr zh: not
en xh: into
en zh: after and should that the their there this what which with your
es: luego muy ustedes
es fur id ie it ku ms nso tl wa: di
es gl id ms pt sq tl: para
es gl pt: está
fo no sv: av
fr: aussi aux avec ces cette dans leur vous
fr fur: une
fr gl it no pt: mais
fr la wa: est
fr wa: sont
fur it rm: che
gl pt: uma
ia it la pt: quando
it: anche della delle gli nella perché più questo sono
it la pt: sua
la ro: sunt
lb sv: och
nds nl: een ook
nds sv: för
nl: naar niet wordt zijn
pl: dla jest które oraz przez się
pt: não pelo são também você
ro: pentru și
sv: att från är
sv wa: inte
tr: değil için olarak

de
cy de: wir
cy de en ga gd lb nds ro: am
de: aber damit daß diese dieser einer gegen haben ihr ihre können ohne seine sowie weil welche wurde wurden zwischen
de en fy hu lb: hat
de lb: aus bis
de lb nds: dass kann
de nds: dieses für kein keine mehr sein

nl
af fy lb nds nl: wat
af fy li nds nl: dit
af li nl: aan
af nl: geen hoe maar meer met moet omdat onder tussen uit wanneer
li nl: deze door
nds nl: hebben worden
nl: alleen heeft hij kunnen nog wel wij zij zoals zonder
nl sq: bij

en
cy en: did
en: against although being between both does each every his however might such them those through upon within
en ga: until
en zh: before must other unless without you

fr
da es fr fur lv no pt ro sv: par
en fr: tout
fr: après avant avoir comme donc elle fait ils leurs lorsque même notre où peut sans sous tous toute très votre être

pl
pl: być czy gdy jego jeśli już która który których lub może można przed przy są także tego tej tylko tym został że

it
ast it: nel
en es fur it wa: come
fur it: dopo ogni
it: agli dalla degli dei dello dove essere può quello questa questi senza sulla suo tutti viene

sv
nds sv: över
no sv: sitt
sv: denna dessa detta där genom hade hur jag mellan mycket när också sina ska till vad vid

id
id: bisa
id ms: adalah akan atau dalam dari dengan ini itu jika oleh pada tidak untuk yang

ro
da eo ie lv nds nl ro sv: nu
en ro: care
fur ro: pe prin
ro: această acest cea cu că dacă după fără poate în între

cs
cs: být jen již jsou která které který může nebo není podle pokud při také

fi
cy et fi ro: ei
et fi: ole
fi: että joka kuin mukaan mutta myös niin ovat sekä tämä
fi it ro: voi

vi
gd vi: cho
vi: các có của không là một này trong và với được để

pt
ca de nds pt: uns
ca en pt: em
ga gd la pt: suas
pt: depois ela isso já lhe muito pela pelos umas

da
da: bliver bruges gennem havde hvad mellem uden
da en la: sit
da la no ro: sine
da no: jeg meget

tr
az tr: daha olan sonra
ca crh nl sv tr: hem
ga tr: ama
tr: ancak gibi göre tüm veya çok

da no
da it no pt: disse
da no: denne dette hvis hvor når også skal ved

es
ast es: cuando hasta otra puede
es: donde fue otro también unas

hu
hu: az csak egy hogy meg mint már még vagy

ca
ca: aquest els més però seva són també

-
af an ca ie la nl oc ro wa: tot
af ast ca da de en eo hu ia id ie it la lb li lt ms nl no oc rm sv: per
af ca fr lt nl oc ro sq: pas
af cs fy lb nds nl ro: dat
af da de it lb nds nl no: alle
af da fy lb li nds nl pt: op
af da nl no sv: kan
af de en fr ia lb nl ro sq: plus
an ast az bs ca cs eo es fr fur hr ie it la no pt sl sq sw tl wa: si
an ast br en es fr fur gl ia oc tr: son
an ast bs cs et fo fr hr lt mt no pl ro sk sl sq sv: ta
an ast ca eo es gl ie pt sq: por
an ast ca es fr gl ia ie oc pt: que
an ast ca es gl oc pt: cada
an ast ca es gl pt: sobre
an ast en es gl ia ie it vi: con
an ast es gl pt: porque
an br ca en es fy hu ia ie it no rm sv: ha
an ca da es fo gl ia no rm sv: han
an ca en gd la oc pt: mas
an ca es fr gl oc pt: entre
an da en es ga gd ia ie it lb no rm sv: sin
an es gl ia it oc pt xh: lo
ast br cy ga gl lt nl pt ro sk vi: ca
ast ca es fr gl ie la pt wa: nos
ast ca es gl ia ku mt pt sv: ser
ast ca es ia ie it oc wa: del
ast de fr ro sw: au
ast eo es: estos
ast es gl pt: esta
ast eu fr fur gl ia it la zh: non
ast gl pt: foi
az bs ca cs en es fr hr hu ie it nds pl ro sk sl tr vi: mi
az crh de en fr gd it nl pt ro tr zh: bu
az da de en fo fr id is it lv nl no pl pt sv tr zh: var
az en es ku lg nso sw tr: ya
br cy da de fo is lb nl no sv: er
br et fur gd hu ia ie it lb mt pl rm sk tl vi: ma
br eu hu lg: ez
bs ca da de eo et fi hr lv nds nl no oc pl sk sl sv: ja
bs ca de es it pt ro: prima
bs ca et fr fy ga gd hr mt no nso pl ro sc sk sq sv tl: sa
bs cs cy et hr pl sk sl: nad
bs cs da de en es fr hr id lt nl pl pt ro sk sl sv tr wa zh: po
bs cs eo fur hr nds nl pl sk sl: je
bs cs gd gl hr pl pt sk sl: nas
bs cs hr lv pl sk: bez
bs cs hr pl sk sl: od pod
bs cs hr pl sk sl sw: za
bs cs pl: jako
bs da de eo hr it no pl ro sl sv tr vi zh: vi
bs es hr: unos
ca cy en eo es fr ie la lb ro sl sv sw tl: ni
ca de es fr ia ie la lb li lv oc: es
ca de lb nds nl oc: als
ca en pt: com
ca fr ie it la: qui
ca fr rm tr: ses
ca gl pt: seu seus
ca hu pt: és
ca it oc ro tl: mai
ca nl pl ro: cel
ca oc: amb aquesta dels
crh da de en ku nds no tr: her
crh sl tr: kadar
cs de en eo es fr ia ie it la lb lt nl sc: pro
cs eo id lg ms nso: ke
cs es gl lt nl pl sk tr: ten
cs fur it rm sk sl sq tr: dal
cs gd gl pl pt wa: co
cs hu is pt sk sl: sem
cs id ms pl sk: tak
cs lb lg nl pl xh: ze
cs pl: jak
cs pl ro sk: ale
cs pl sk: jej
cs sk sl: že
cy en eo et fi fr fur ga hu ia it lg lt ro sl: ai
cy eo fur ie it vi: tra
da en fo fy id nl no sv: men
da en no sv: under
da eo fi nl no: kun
da fo fy no sv: har
da it no: fra
da ku mt no ro sv: din
da no sv: eller skulle så
da sv: blev efter
de en lb lt: bei
de eo: nur
de fo is lb nds pt: um
de fo li nds no: ein
de nds nl: andere noch
de nds pl: sie
de ro: vor
en eo es fr gl ia ie: sur
en eo it lv ms: ed
en es vi: hay
eo es: estas
eo fi gl sv tr: sen
eo it: stato
es gl: están
es gl ia pt: desde
es gl pt: todo todos
es it la: uno
es oc ro: sus
et fi is it sv: alla
et fi lt lv sc: tai
fi lt oc ro: jos
fr fur ro: ce
fr gl pt wa: ou
fr it ro: lui
fr it wa: ci
fr oc wa: ont
fur it oc pt: sul
fy it lt: nei
gl nso pt: ao
gl pt: aos até onde
hu pt: nem
is no sv: utan
is nso ro sv: bara
no sv: blir
pl sk: ich
pt ro tr: ele
pt sl: tem
ro vi: sau
"""
