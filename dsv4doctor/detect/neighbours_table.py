"""Which small words never stand side by side; written by `benchmarks/neighbours.py`.

35,139 of 52,441 pairs, one bit each, in base 85.
"""

from __future__ import annotations

WORDS = """
a about af after al all also an anche and any are as at att auch auf aussi aux av avec be
because been bir but by can ces cette che como could da dan dann dans das de della delle dem den
der des destes det değil di die dla do dos du durch een eine einem einen eines el en est este
está et ett even for from från för gli had has have het how if ikke il ile im in inte into is
ist it its için jest które la las le les leur los luego mais may med minus mit more most muy más
na naar nach ne nella nicht nie niet no not nous now não och oder of og olarak om on one only
ook or oraz os out over para pelo pentru perché pero più pour przez på quando questo same se
should sich sind się so som some sono sont sua sunt são também te than that the their then there
these they this though til to uma un una und une unha unter up use ustedes van ve você von voor
vous være was we wenn werden were what when where whether which while who wie will wird with
wordt would your zijn zu zum zur är über și в для и или как на не по с что
"""
NEVER = r"""
NX6X-DMsK2OxutLU;q$kgav~QmoEUIcm{gto(j1?{Qv9y|NQ%wz3%?!zxw%qO=0Pm-v`~U|L;5ZzyD_Rf4BeLzt>&<eO*8I|
H*&+=JNml^?xel-t+&j|NsC0fA+fjum9lZ|2K`GUw+;FyZ-;q-|wEg#r6OGf4f|F?(}~B_&+E4{oCvRpVt35fIGrJx9UHeD=
*mUroX_6od4G}fNuD)PNn+4g%QX2^-!(<bL1_16y1h9)bp>JM$#`gj;~$+x5AEo|BR?d9{;^xue;j26L|i*ll{Kw=l}ld{{R
300000000000000000000000000000000Du4(V%#@?{ChZZkgW>(!wtacaZLi~haUq}uK#<3_qYFk{eL&#-oDq>|GgJJ|F21
V{qp+x`}Kbc;Lh;humAt!-%Iv7_z!m==l?YgsG5EqeY^Z`0Ngd^`$hEKJUGf$6zRbR;QaU|0rU%t0V~%3xv=@ue+Rz5o3C!z
>*TlmfuEb#G?s6<eRi+<|F>`d`|rm0_uBv2d)@ut*L8FEo&NW4zyJSV|M&9af3Kcu)c^mVd#|&b`M-Yt-_!rT?WX_!=>OjS{
O{jU{qX<)`|ox1d;iwYe}DSlxBdQKfBhc-0000000000000000000000000000000002|`{%#^fBpae|Np<&-T(bxKmY&ffB
*LT|Nr&hf6w~&-;Dq7w7>uNn)|=4>*w}6-H+dX|Np=K|L@=a{QLC%-~a#rM0fx9fBp3Tr~lpB@BjbT|0$3=!~ehT|Brib*{k
9`+<=_l*A$3;@O9kn`oEWQ@B07O|Nr^#J$qIBhdcE1|C$EyZ@<pHUH|vM?tB0L`u~6bzkjc*|M~}h{$JC4`swHQ*X#f9{{8O
%U;p3#|NHNC_kaJ_&HsP;-@pC-|9}0TLbx;B_pAQ*IP#XgD*nSA+WB`)1L%hz15~d6V<7jhZ+?+|zklDd*Fjsj0X~1HNeKPm
`^?(ae-G~N@&B*;|Kt06_qzHI_n_zhKOLrDe*J&F{to~E000C400000015yA0000000000000000092|`=9^6{{R2~|KIEG|
NgI^|Nr#AfBXIa|N6hXfB$R$m;e92zx`9)J>UQJ<MfyQcW%7@|6l+2SMPuOeL8>e|Nno4yZ-9GY~KFE|Hf?h|Nra%p4{E-{$
Kb1=l8enb@d<q)6f5Vn#{la`u~3Y-^q*Ly;GuEx&LqGImAlu|N3zXPyP$GpWWxH|L=SEzwdsrec!*|KGq$+y<Ic^|H*&%=JN
ly_5VLV{`c#wUitt3x%WD|z5naye?9&0+iv%dkN*Gf-~asj^!@q&|NlgH@ArTG{Qsx_-P-T}|JVQh{P^E5gBs!g|7YIo?Dqb
zpa1mqzkj>gzdriEI_kI6?~~C%$=mn?kfBrBXL|Eo{Rd`>_x}(7|M%~I|NHv?|NsAguDk#HzkdGz)BpbM_y7Ov|Ns8|@Bd!^
|NsC0?{)Wo|JTp|fBN6Q{r>-d{r}&W|NXM46aVFJ>^;WrZ|d5)?@s@-x10a(ga7M$(!YOCbb6=!jlb7e&kbESH{I!f{#LvHf
AD`RJ^uI008Z%kzq$7sxxM@2=f6AMjo)tnzmNX!@6W&f`}F_+|G)cOcmH>O{Jj6C`~BPP|Nqhd0RR9100000000000000000
0000000000000z`tkx`|rm0_sZS-d(HjV)}?d%o&M)<zyJRq{|5j70000000000000000000000000000000092o{ja}Y-tY
ha^$&H`UjLVm(_66Lx%vM8fBoMGjW<0qs007Jb>_X!V(gvR`A<y#>o=3_lA-(m`}e>9f35%j|Np<&-QWFRKmY&ffB*LL|Nr%
W4&d&z-mmlj=h<80xM&Y|Am{frh@f76oLRa4@6X@=zWeq5-T!~LTz0=zeEj_Xr~h?Z@Bjao{q;HM->Wmau~Y8G-fQfp_O73s
=kz~ryZygE`2W9u|NHk=FZ}=i{d?X0-v9OU|DXQ%ZNLBDSN~sE?_dA_>ifR`zkQFpetZ9Z{{NHz{>}CO@9Y2n{`~LXQoa8F|
M%~8_Ivl&&wqRR-@o1d{~!JT-;e+Of2y_r|9}6z?tbt7`uYD)|NFPw|No=^|NHa5|4;p||Nq~;*V*sgUqAo(>3{!ryZ?Xm|3
Cfy_us4E`~Uy@_qzMP`|IcbKmG6DZvX#}{_n@%|Mq+J{Ph1{`&@VK^?&^Szo-BGo9+Mqllzs`>(@7*nhrqTE+1edjm8X}yXR
y-Q*-(M+4}#xfB*aI*Z1fD|Ls%V{m1|H)Bm6TcWb}@|6l)i*YAJ-{rZ3M|NnokyZ`FHKK|a@|IY3A|NqPX?*9F6zhD1P?*IS
KWyfFt*UjI5`rp3&{{MgdUs*r=`St1hv;WWkiSFL--TJBfM*q9D&j0_f|Nr~ezyE*z|L_05zt`RW?OQ+p-|2t<_WS?;^?y6$
?)BfV`~Ty}Tlc#9A9rf!|1}M!AATQixBgEBoITzXF#J@!aY<YPO~DPo{5+-sz(bD%YS$krko&{;uiF2gKW~}q;6LmEo`2Ugk
bdxe<n4ODzi<Eh@5cZ4&j0^=-TmMG_4EIq{`YUc|NmeA|Mu;F|IK**-uwT5ue<;IzkdF|)BXPK_y7Ov|Ns8|@Bd%_|Ns8~?{
)Wo|JTp|fBN6Q{r>-d{of0_Z~gzP|Npu5p1rRA;~n_<e@$cQx1aytuK#l&ceVe1{r{im-?G=mf4D<BzprU1{q}q8+x34A;J)
_%jr;H7+FSOT_z!pJ=hiiigr9z$UAz9j?%w~t`_=b-|9<;kcX{@9?fm~I|NWcG|KHaCx#0WH{lD)2|G#hDtLA_Fi=ThrG=_f
r@qg#~zXfvt`v24Y@A2*|dtLm8KY;W1ng-BMKTf<||KInnfB)V1{!YL9f2O(r`?`MazSIBw?f3ux>;L}${jdLD|DXT=`fqgi
e*f2x-+TJszkUAyfBpa8zhC|L>;L=zzyG}M-tOP}`M*#9>$l$j|F8f5`}4p5U;Y34|L?xnUC;bqKmYgXfBkm*|9|ywqQqFx&
WIZ9fkjKg2uOi71jnK=iKHA{9!RtP|Lt4<{=3orz4L$mUUUDqcm3Rbr~m!i@BjbD|2@$A*MG16|G$4f*z4%O>WiQM-xQX9`F
-Z^Xe$A7Ww`DI-ShF{C0iY&fE$qW>zV}64=xWiUH|{_<A1LX>a_p=pLwsdn>)XH{@>I8zU`*}`sn`@z#ZZ4U-jR|v6s$N@gM
F$&cADlL^b>vuzLO9-@o_$_v`xq{QtMTZvMwT`uYD)_xqRM|NpQ5|NHm5|9-iD|NsB5*WLU5UqAo<>3{#$`}_a(e}Dh}_x`W
>|NsC0^SbN1f9q!dKK-wse*OQy{to~E000000000000000000000000000000007+o|NnoNzMud1d7tXezy7aZ{`YjdbNl`O
|N8&GfB)O>SNs3}|Nm><`QQKb^Z%dz_iw-d|6l+2bN}!E|Du2D|Nniex%&G*e*FH?|NhPQ|Nra%?*9Mpzfb?i|NsB*boXE1#
?Rk>`rp0%{{Mgd9{>OV0000000000000000000000000000000Qmd&zyEf<fB*0QzQ-MZy<I>5|LK3<#{2*O^nU;V0000000
00000000000000000000000007|c-~RmgbpG-G@Bc)0@6~Ua^!=m%&D!Sw|JVP2ox9inzv}<*?{D3!>Ob6ppZ@=Jt$+FT|L^
+$w`c$R@5cXk`rrFI&As2&@pJo~{?l*2|Gyvq2LJ#70000000000000000000000000000000RQ~_>-$mv`0xL7?{#)N_r}k
Ed-`9u{r=w`{hyw=bN&D8|NnXS*1f9!>z&y7cTbV%hhOhks{iv_cenq4z5jpT&c4@8|GgJH|Nm)z{qXC*{`G$V0000000000
000000000000000000000002s@8AFa`}P0*|Ns9IcmDN%-TeKh|J|GK|Nqzj{k;3%Be%M~-`{(Ws;-RQ37^0J<iBon{lEYE|
G$6#`|nrZ|Nr~{d)@8Z`}OnxpX~Q<zyE(*|M&OjfB%oF@Bjb*f3LIKyT5+^`_uov?f3uw>;LZl{qMbB_RsJC|4($)e(%=D-y
iy4zjglqfBpa8zyJOJ>;M1%|Np)2zVH9~`TtM<`?uf!|F8f5`SHJZNA>Fe|IfYG+3nq5KmYIPf8TcVe}44;KX?As?yY$3|M%
JRI;*Sq>*xPG`LEk-`R|YZ|E%Br{`>X!{r`UZUU&KScJ2KCC;$DM>;K=@|Jl&H&wjuBAK5o&4B)CQ&H<ah_hhSb;rXup`acD
7$GZPl_5bnZC3{``k2{d_>zW494?YgNT>l3E0000000000000000000000000000000000Sz#ZZLU-$pVv$yV5^&jp)&#!BW
K|lODzjFQG-@X5>_v-%N{r~^H?E0(!vibWD{@az`|NpQ5d*fEW|89JL@BF{N*WCZ@T|al<>3{$B`~Uy(e?LF|_wS%i`2YX8_
d2_|`|IaFJ^k<7Zt|~>{tpD4pZ@#R_kDbL$y5b-;0DP2z9td$gUbPG*Z-Hj>(_fHzQ5c5{@-ct|GuuByYKWrfBXIa|N6hbcf
Wi8)Bpef|Nnd4z2EQk^Z%dz_iw%b|6l)CcI;pOjo|vuc|U)zxjfT4cJ9BE{rJuG|9|8E6u|Z4zEk(_$CHvobkP?20M5>B8c0
8UIEZ%rpAxt?-2dzT|2g-PJu3Rb9pL$MPt)m#A4gQL|5FinjQ@Y#{~t$QvRB1_y#qP_u4y3s@Z-qZ^?v{W0000001yBG0000
0000000000000000002M%*ctAdQT;s}dB_w6f8h?`{5U27^uvz<Dp&sj0000000000000000000000000000000001hKXre3
?}z>O_uTDz$@Sl};q&hvcE@kOpRZs4rvmN`|NZ*^KHj`wuZ!Pt2YUWrQvmwy=K;0rzfRcw>Ax9W-_4Jw>^1d&PQ=c=YZ3{+{
J#2T{oh@^|Lynd{O$e!_c84JtN*fj`%nHGv)%vyumAu1_rL#t{r~^}|G$^r|NUPt|NrTK|MvU;|Mh=&|Ni&?ulN7||Nr;8`@
jF|<Nv??@7{j@|G)eX0000000000000000000000000000000000000000fB*mh0000000000000000000000000fV+SH`=6
Kp|G&TeTiyNN|MlbbpZ<4lzyJSV|M%DKZ~lFH{_g+3exkeg`>%fb{?mPK?eqWt>;M1${qO%@|NsC0|F3oTcmLPV{(tgczy1F
IfBpa8v;Vy}<NrJD@BO{z{%`Brx&2Q6<G0`c|BwIsyZ68MfBFBo``bU2U3>LkE>3^pf8)0M|Nr&>cmMv^zc2s)e}DV8y8FNX
>&N>){qNs?|Np=K-_6_`{`>X(|NMXZUUz+UPWb#<r~mca@AvQ5|D7HC+jA$ZKhXVcA40CFvJ4ZWH(<XI!TtaL`nv~m_xt}>{
r~^{y?fpLhdc1|@1F+nFTei(UH|{_<A1M?>XrZhpMS5jll#AZ{@c_4zU}7!{^<XIe*Ev%N4@s{|8wtk_H*~w&wqOQ-?!cV-y
i+o-@kvo|7-sL`@jFa?)vJVy4k-^{_D42|NpQ5TL5v6GDg+w9|z8`RY-4`12})GDFD^*BS=W~e}B#T_uh!=@3g=7_nP~Uzia
3GJN=K}eE<JG{{KzfAO8P!|Nnn~`(9Q5;ZFGc|EBr<%kMwx*Z<x9```ba{Qv*`?VsxI`~I&V|G)IVbNl`O|N8&GfB*aI)BpG
X|Nj%+{onuf^Z$?jcWb}@|6l(P000000tf&A00000000000000000000000000RR910001h0000000000000000000000000
z~8<9t@rEy|NsC0z3lq$|1$ai5C7Y@-~a!w{{sL30000000000000000000000000000000Dyo0?$!P;|L6bxTgSLdyZ`U!=
PB8*-+ur9xBgEB+&%99_5Xi-d&^!2|M3s>{Qsr^^uv##YuEoNfIG+azs~=UBQKe&;y>I0oL|>8fPVNfVCDKhm2mv~Z&CAq@u
sXx6#R!9fb;8~q+1WZj;UP#_xJCA|Nr{`|NsAgudDz2pML)T)BFDA_y7Ov{}#aA<Nsgvzt54k>{am}|3J^bYnnhm{1~@({ht
H8Gu;2{|NlAi*1anJ!yWkfcTbb(w;#(?um4{XcZd6b-Tyz|Ub<J^|M?3!zwYTq{q%eN>h=Fm`tEc8ulxW1`v3Q;`49i;=ifa
|t6zTZ*S-F40o)nx|8@U=oH^-U760K6;QYF#Vf4d~C97Be0RR91000000000000000000000000000000fVy}6`)`EvclzJ|
d(HjV_x1Dpo$kkPzrX)q{|5l>4v)P8e?Fd!C5?f$@CI;ZOcOxrp~nEU>;HfL{qLP$|NsC0|L<kjfB)Cb`+xf1zWx6HfBoNmz
rFqS$^Enc|Np)2{_Fob;eSv6qqpDx|F8eM`}e>8dig)~|KGpW-GBXG7yke0f9Ll5|Nr%WH$49L>YzsW|Npu7I=j95>*qf`{q
Ngu@{f=H|L@=b{`>U*{r~^}N_YMDfBp3Tr~m!h@BjbT|NZ^@-@m{9|NsC0-|O!G{;!|^|Mb5<`~Cm_`ab{w0000000000000
00000000000000000005vu?hXI{`u~6ay=1Se_i+b${$JAw_~F;Hwd?;Dz`bF=U*%87xtEMl@gMGh%&%_>OFaBMvvU0(0000
0000000000000000000000000000000sQdT7{|@zi|G(e9*IoX-e>?yG$$$Um`hUOme}CV8_unV~@Bjb)=em2p|Lf-eKmD)X
djJ2w{_pSJ|Nj5=|L^|)|6X?g*MHso{ipx^%kKaG*Z=+f`QN{Tdh`GP@89d}_x`V+|Niv9Z@c~fKl=Z_e*gRLSKIgh`~7>}{
oC91^Z%dh_iwKM_gnw}_wRrIeft0W|NnoYyZ8IQe*XW_|Nias|Nra%00000000000000000000000000000000000fB=a%{W
7Y``?z(+tPXm>4a)gXO@rvCljql>|9={HpZk8*{ojY*zE|CU_(?zi?&)y-@?yWP_4gk?{`c>zPWu1<`S&`zz5nayuRs0o-+u
f5pZ@>l$Nzp^)$9HLKlNT`H+FXY{HLe?ecNgN@zMV|ko(*JzyAOK|L@)F>ObCrod4G}kbe5L{_Xld7ku}*|JVKhf9x%LRs5G
b<@4{J2GB1*?yp?`w}S2;|9`swKi|D%ud4rehkE{f(*XM6*Ri$h{~pl&=f7X`|Hrqt>~--T@6b%YYZ^hn{h0Q0?c58yfBgUJ
|Ns5}p1rRA&;R)O|4$?6w_msauK#-g_mBI3-T%MG-m+K4f4Bob|E_5O{qke%%C&zF=KlBpulxV!-+TAE`Hz3#=l?a0px=J|d
%OPcYu$hD|5gA0AAieUb^qrd{rvl<>-Ede<+|7Z|NQ#jzk>?7|KH=@>#XPgub=<+^uKPq?Y}?z|0fdn`u|n^{`LK>dma3S`P
B3Oo2Jt(xBl-<|Nrshf4`3E#sB}Gd#|&byT5+^+tdHP?e_or=>J~G{ptTt|NqCAx9oM%AMXLq?`sN4Km0thcK!d|zyE#rtMB
{&{q{ZX^6l-~`TtM;`#0DBzpej!dUvP)f7SoL-`=~|#ecX%KmY$}8vpX^{p<DrfBydW|F8f5|NnjWy7@o<!RP-y{qJ9X|KGd
*|L))azWdep{r`UdUU&WWcJ2KCC;$DMtN;Jj|NZ^@-yfs;vEKjn-|OzT>W`oQ{`9|Z``Q1$`uo3s|NHOP|Nj5~|9jp2-~aXV
|DXQ%Z@2&dPyYu10000$5C8xG00aO4AOHXW00000KmY&$00030zV+|F8{gkM|L^ZL_kVlW&;57$-@p0(|9|`+00000000000
00mG0Du4h000000000000000xYPH)|9<`d{r~?z)!qO7Umt(}>3`?;`~Uyt|9}7f_y4c||NsB%_qzMP|Lf=fKi%)&e*gc!!u
s#u|Nj5<{{R2~|6X_h_kaET|EK@`+wcGX*WUm6```b+{{R2~|KIEGzy7bE|Nr#AfBXIa{|bP=fB*ac)&Kwh|NVR2{onuf^Z%
dz_iw-d|6c+4_wRrI|N8&`|NnolyZ`yWe*XW{|Niaw|Nkq1|N8y!|6l+A|NsB*b@hM$*U$fd`rp6({{Men<ln#l{r~I#|Nr;
@z3%?+|N8m=PyhS3-~a!w0Q~#+zyE*z|NsC0zt`RW{a-)-|LK4K_WS?;^~!(${`dc{|NsC0|M$B4zyIs!|3Cfj-+ur9zv}q!
-~ayq_5c6>|NmZh|M!3W{Qsx_{oC*V|5pqE
"""
