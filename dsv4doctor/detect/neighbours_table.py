"""Which small words never stand side by side; written by `benchmarks/neighbours.py`.

22,017 of 51,984 pairs, one bit each, in base 85.
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
these they this though til to uma un und une unha unter up use ustedes van ve você von voor vous
være was we wenn werden were what when where whether which while who wie will wird with wordt
would your zijn zu zum zur är über și в для и или как на не по с что
"""
NEVER = r"""
NW}SuAx7c{2;P7LU;qG^#0S6)kRJeYJ^?rWPKBHgJm<B4FT-7mUN_S6S-l9qgs|{r^FcSm|NH*=&NCYM*Esy`>vbn>pVy1<U
+|yLH2?oM{7;3R>pbVRf3L&ej$U`t^clSf|AaB{Y}4I8!~gI8`OY(5*!L>@rOS0EZI9QB@K?B>&o=+>H~h~9oCQ1~m4AsqTY
y$K(l$t>2)~38uw=u26~g}>Mi|0VNU`<`kfG~QBnghti?B+V3r{vZe>ePp#UJfF1(6Re!`r@GchYt-un2br|G8-6|9-;%000
00000000000000000000000000000000KmZIOECT_4EdW`FUIo(N0Hgr81Of11!vGb-|Nh|l%yVA**BJbz>vbh<kA;iyPtYD
u7Jq*?{LcZL2|VYue=opWm|h3c;0UA$zJvjhXw%&{!~Yh*`NA?@^4AEErD#O~435x>uum8OPc{sFG5pVkjgLGduzjt-T!LOF
lH>`z2)u-`xMcF#J;MLrzWL5G8r#=8{B7%XCv6|si_lm2pU*b`|2O>a<%jPaC6x%T!ymR@XA<^#y$HXB|G8|U|9Zgx{{HyRQ
$YFfI{fMDbtGw@){Ago_@B!*|L-^a4*&oF00000000000ssI20000000000000000000006+i$0000000000000000000000
0000Pyb{?>vLCe~rRdzg~0F_H(@`|AqhkZ1ewr!~g&O>CQ7w+xI&B?MrkgZJ*bR@L%|!#Ww%{H~de5oQXW=HGeO_TZ&#6((n
MJ2)=|s@L<z%H^cv4&biKWUi<eVyyfV1BMpw!i||VrfX_Cado%p+g`MX-=e2*Y!e72#SJL!Jya>O9`S57t_gBOJ000000000
00000000000000000000000000Kp~t7EaMe_F92DJUKP^d2(1XagaPnm!vGb-|6IuV%2QtR_bS}&=yd=Dp1_OHNf-i8HlNuu
`0v4;Z9L~Se=k8_u3mT2;25<C|AoWxWYhn5!~XyP002M$000000000000000000000000000000000040RR91000^Q000000
0000000000002){`rpaUi$Ys{Nzh@Cv2bBi_l;ApUp7;|2O>aubl5R<28Sv!{5FbSJ3o%nF#%b|H*9g|9`{(pZ?j*a$fWIGW
6x@btMg+(~Iz1xQ<UY{eL(7@8pN?93_=6uft!m9A=XCdA$gQ1^<a`WB+->{{R3000000000000000000000000000ssI2000
00004jh00000000000000000000000000095~`OYIw``0@B?MrkgZJ*bR@L%|!#Ww%{H~jDChwnTAlqj#mAF^I&lJ<GM2&aY
rxol$pdcgng*xyb!Udjh3{NW2=MobBxiNsU$AIui-|3Cg80000401yBG0FVFz000000000003ZMW00000000000003100000
00000000000000000000@b8cBJVlfVufrd<9%GXBdA$gCh5y-X;{SWV|Nfr%&QlVZ_d0y#>oo>phu4cxSNNaLBKQ9X{BNa&?
>q&N39Z8ywq7Tac6q%B_l3LpZ1Vqm!2kdL`0g`K`}aEht?P9sX`k1N@L%|!&u0Js2mB8J000000000000000000000000000
00000030zWL5G8vEBebnWXkCvBV8i||+YpU*b`|2O;(00000000000000000000000000000000000|Nr@pvtRo6I{od7btg
=p*Nf19@Sn{z|Nl4q?}Ueo908PpEy5bIUS|;YNWBQ>1^@X>(7R;7{r~^~0000000000001BW00000004jh000000Kfs9i9F*
qey;#qiX0cf;0UA$zl0IcWy6^j!~gI6`Ob4*>-RYPW$R@pX`RQ5@L%{J%QpZ2H}wDSh3_1tl?|=J7q(t!683q$2)%{>xor0T
e!&0#{`t;RTDkH%{Nd|$CuyJ8i|}9gpUXD?|2O=<uAlFG=aqM_!(X~ych>g!y$JsW|M^Vu|Nq1P|Ni*SQ&PG1I{fA9btY+-*
NgC9_@B=v|NjU4|L>RYJSUY}ufw0dUU!mqdA$h#h5z|%^8bIp|Ns8@&T~@x<2w9h>vbk+m)DDMUihESCinj*{0{&C0006Y00
0002mk;8000000000$00000004gc`OY&|+vhs`t&4RhO`pe$&|CPQ&nEx>H{7qRAFn*&lyro`Ub_Gzz;<!12z>?nT};vcZ^Q
rZ{`t-$Ui+6i{H05EB@Lg~i|}9gpT&0n|2O>q?w{{8<F$XJ!{5GKchdHGJqW#p|JiKw|9`{(000000000000000000000000
00000000000@T?#1JmR!`iNnvnM0djWX}tjbf&W=-^Z$Rt{{TP$00000AOHXW00000fDixx2mk;8000000APol?L6l-e=h)8
s$N&p=19E=|AoQvWb?6i!~ays(ZVqZ!^Z#|g}`+o4ZZ=2;!7An3^p84GyF(_oX<SxwSKR_*^XWZ(&7oQ2)~4Z@MQCaH^cn^0
0000000000000000000000000000000000000000000000000002M$004jh00000000000000$000310003X000000000000
06200000000000000000000000000000000000000000366!%yVA*_agYE=yf3tj*yD*OBf5!HsAd-{LcZL$2_OCe=k5=ie4
Ae;0e75x`dJNXw&I6!~gsK`OY(5dG|8xrR#MEZ4cLq@L%ws&lLavHvG>ApKmPZHGi+eU8-I+(&AaX2>XOF@NC2X9mD?~*zwM
DUi-HKxTWZIAq}5UittMq0FO4@_%r<f@15^Fr?G#H!q>h|bJF&Ey$FAW|NU(9|9`{({{H!n^IrRxI{oNtbSG?|*Nf19_@B=<
|Nl4q4*&oF0000000000000000000000000000000RR5@&U0S-_d5LH>vabqpVy1<UHBi*Cjb8@{7r-y54Z^tf-T@!3K$ibu
mGS4GzO8-MB{-q*Z%+j000000000000000000mG0000000000007_vp07M-wSTX{--upU()L-s2>yhy@MQDdKZCs#$Pvgh7I
4=Bh=u5N00<61ir`BS01p%&ZaVz`<A?7YMU-u?!ymR@M-p~;wFtk3|G8|U|9Zgx6u=q4VqWvt0<eY3R3#0LK#H(Shy)2X3|K
Y%@9&@QJm<B4ufpG+UN_R<7`+Jph5Pwr^Z$Rt{{R300000000000000000000000000000000O0SR?;Phff3L&eK3;cF_Gz6
6--ZA2Xw(0H!~XyP000000000000000000000000000000008jrzwbWlwSBCU-@06P()4+~2>*xM*=+a!f8+oE{`t-`UhDTd
{OzlCCvBhCi|}9gpU*b`|2O>a@4nAI<28S$!{5GEchdHGya@k+|M^V!|9`{(|Ni^#b58sBI{fYHbSF)p$BXb^_@B*o|Nl4q4
*&oF0000000000000000000000000000000RH~@&NE!==Q{lD>v0EdpVy1<U-+NPH2?n>{0{&C0000000000000000000000
000000000092}>COXA;}<&o>`P=POr4es&>#4p#5Vu`H~jzWoUJ_PHGeNdU#?zN(%=ZZ0RM$+`DD}oKg0k3p83u*8vEBc{O#
*CCvBU@i||+YpU*b`|2O;(00000000000000000000000000000000000|NQvQb5OhSD*WN=btWm7$BS@V_#e+U|NjU4Pfwi
hJm<B4ufSWXURTogNUR9Ig-G#W)B9Dz|NQp(%yVA*_ZqyR>vaQdk41~{U-+L-HvRuM{0{&C0000000000000000000000000
0000000000000000000000000000000000000000007|Uo$nl>^>wYo-a1@$Q1*De82<(Tv264Ie#8F&0000000000000000
0000000000006200000000000ssI20DuSp00000000000000100000@BaDDGhX_~8vN}`bSG?&*Mra>_#e+Q|Nl4q4*&oF00
00000000000000000000000000000Dpe?&QVag^E&)t>vbk+m)DE%Tlk;LCjQR{{Qu{VuNb8jFR#NNK3-=~^m)A)p9TN1Y|{
UJ!2bXM000000ssI200000000000000000000006*_pKUbbwSS1i86pH%KyV1W2)%`S(M03FcEkS^$QjCVUh($=l!fSZAuW!
;il9pv1P?YGb~F4B000000000000000000000000000000000009K;#Gb6)fJDzK&MbtO%XK#QPDhyhPFonJBh@9&=PJYzL~
ufpHHUU$&cd6@|P1^?+}^Z$Rt|Ngk~&NCX@*E;;|>oq5B8`q1_SNNaLHvj)O{Qu{N?>q&R39rK+wq9ovc6q%Br-lFdY$E@9!
2eXh`N}h1S=R!FrN~tQ4GzGH@JkQ@4-_9zGW-t!fB*mh0000100000000000000000000000000000000000000000000000
000000000001>?3wR8gOPQO!(P5#chL56tqA`G`}s`q|9`{(9LVv)GFJ2V3YdXlbOA(~1d6~-7y?f=9BecEPY;|6Eax?UuYg
;q9u-jF2%reNh3W8M!x2@(|5U^oz;j;n_X3cG=yfG6kHCwtPZ$hOHXK_s{0{&C000000000000000000000000000000002~
gnZhy{(bocyg-B5#1&;uVfI|=f4>k-?G5ikz00000000000000000000000000000000030?D@_yUi0@F{H5!42W^j*i?CbR
9nUsCe>eP31)PgK=e2(=z*&G^SJL80qzM0nQ1EE;fi=UwUdZ{#GhSQQ3XJ9Gbti2O)Qa#+5D8B<-+eRu@2;NjG~+dYro!L87
<SUsd6@|P1^>xx^Z$Rt{{a9106+i$00000000000000000000000000O0SR?>y(Vf3L&ezFv3I_IW)B|AqhAZ1ewr!~XyP00
000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
000002subuBa<FtQ`!(Y5acf$5ry#W1%`&exA|9`{(00000000000000003ZMW000000000000000004jh00000009610000
000000000C4000000000006+i$000000000000000000000000000000000000000000000000000000000000007^_xxjN?
`}YdGrR#MkO^3vbpk4T%&o;kbH~jDJp6?tdF@1r;Pr5{QK-6KF2>k*7K?L*vf8+n2*xAl=Uh(%j^yTVxCk>9$i?Clfgikj8|
2O>q<A?7Y1(hqW!ymq0X9D(ly$H93|G8}9|9-&#e}4GRQ9`-)I{ablbtYk#*Nbpk_@B!r|L+I<@9&?l9OpHEufyNIUUyLRNu
3Da1^@AE^Z$Rt|5iYlf)G&g@&b?{=v5*~mH>*7N(cZ8HWUpb{Qs{T?>qyseT~D{zFu?E_HnHUe}(_`Z1ewr!~fsJ`M`5t^Y=
RRt?N}KEsw>E@K2bZ&o=+lH~bF(000C4000000000000000000040000000030{`t-$PW#t7{OwD0CvBhCi|`-#pT#!+|2O;
(00000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000000
0000000000000000000000000000000000000000000000PydhtvKhUf3L$|s$6$K_j$bt`~~~*Z1ewr!~a~u*~)TW`}YErr
Ra4b4WC4d@J|Q;Pc|HXGyG2hoGC2lHGVGuS%_X0(%=Z72)cv;@MOb?6~q73+VRFSMCtb++T`j{AT5p%i{N{(E)9GgQ#Jhm@1
O5H=e2*Y!{5GMchdGby$Jt>_xWV=|9`{(7QorUb6)Yc3XtXKRU-|bz>Ba;m;etpjrueE&jFrEEa$a<uK-)BURBcINW2KUg-P
&i<N8&@|DWX9!g5~o_bRZ3>QyIgpF@kFU$_yEHm_eb{Qqg6Z7k<Cf3HK|zFu|G;5oeryM<}-WaEBa!~Y(@nZR;h`}YEvf$CK
u4W9stpj#LQ4>qh@HT(|%000000000000000000000000000000000000000000000000000000000IC2000000002s0Gtgx
V+DRJU>OP;13=&jpa`4<fbby0K{UhvfByN-5nlWEI{fYHWe07a*NO07_@B-;|Nl4q|L>pAJnN)?kJI12UU$;;d7TLVhyT%R_
y2#x|9^P+&QU;#@H+fq>vbk+pVy0UTDYIfCi0I5{QvKt?>ytQf3L&ezFK$E_IbSs|Aqf~Z1ewr!~X#Q002M$2mk;80000000
0000000000000000000000000000000000000000000000000000~$hpXKUi<e7yoKm>CoGRZi||Vj0gpC6e>41V0h}v5<F$
XTfLn@K71HnstO)vqvA|&SnH9tT00000000000000000000000000000000000;O?LAJR_BNt;1fvUU$;=_^k;41^@X>@&A9
r|Ns8^&U0S+_d5LT%XKGgpVy1<U-+NTGXMWK{0{&C00000000000000000000000C4000000092p_|9`coAo;U<?D5)X`k1N
a9{YJ%O?N-C;b1fpYJ^5m3OVfUcO#;()Mw^2>%8D`E2q3e#8F(000005Fh{o001BW00000fB*nM00IC20000000000000000
0000000000000000000000001W35Z6I4;u0<0n8bpQd5P>OI$7zB?do?ip}|7o6WEaNqIFGF6sUUkyoDXj>*g~Rb=!+u@E?>
~O{&Qn&I^g8_E>vbn-pVx~}U-+NTHv9h<{Qu>L?>uFdd#%GCzFudNc5uB2r-lEyY;ga4!2ce|`OI@(`}aEh<?3}M4Ua&I@Jk
pO&o=G<GyKm5pKUDXHGi)ITZ&#)()38Z2)l&=@MOdN6~q5t(D}}DPV@IF_=V_IB@LfZi||hv0FO2uTQmIc0iSO?=QV#XLSKq
rH`4G3tq8k?5%6rov=_twUfB7{b6)%RI{fA6bti3}$BXb^7y-{V-TpKD??Id|Eax?UuL4_&UKP^d7`+I)gbDCu!`Kx={~pZw
&U0S#_bR;Q=yf9vpTLXoOBeyqHvM}u{QqyAZ!G5(f3E{yie7cn<{7;R`-SWAWaD~W!~cI?_|8*Mk@PzJVe54SWuMoJa9j8v%
O?Bp2mJr3g{?ei6+f>*U#eaQl3+Ns2>*o1uw>HzJ;DD!e)!H)P`U6r{Nd|$CSjM?i*Q@`pUWoyuLu0kg`Cek=d^#V!dZ%57t
-(;pa{N%koaixl{Lfv|Ni;TGhTVuI_#zEbq8$^*NgC9@So2V|Nl1p@9CYbJm(dEuR>d{UU$;q7`+Jpg=zR?)B9h;|Ns2?&U0
S-_d5LP>UAS+o|B94Tlk+(Hviu<{0{&C00000000001ONa40000000000000000095q`OXti`Efe@?dx?XX_wcFa9{YJ%Qp7
^C;b2KpYJ^9wLh=J-@aaV()M}12>*ru`E2w5f5HC%0000W2m$~A0Ehqp000000000000aO40000000000000000000000000
0000000000000000000000000004*p00000000000000G00000000000000000000000000000000000000000RR5^&U0S-_
d5K|>vbn>pVy1<U-+NTHvj)O=>G4Y?>y(Vf3L&ezFv3I_IbSs|AqhgZ1ewrL+}6o`Ob4*`}aEh?dx?XO`q3`@L%|!&o=-6Hz
4rupYJ?pwSTX}U%p;<()M}12>*ru`E2w5e**#k{`t;xUi<et{O#*?CoP}Xi|}9gpU*b`|2F{mub=Nc=e2*Y!{5GMSJL)*y$J
t>|M_h5|9`_{|Ni;Tb6)%RI{fYHbti3~*NgC9_@B=<|Nl22@b91RJm<B4ufyNIUU$;=dA$h#h5z|%^Z$Q?od5p$&U0S-_d5L
T>vbn>pVy1<U-+NTHvj)O==$%U?>y(Vf3L&ezFv3I_IbSs|AqhgZ1ewr0|o
"""
