"""The words of the English-French corpus: a table to read and extend, with no rule of grammar in it.

Every noun belongs to classes (its table's key); adjectives and verbs say which classes they go with, so that sentences
make sense. Regular forms are left to `inflection`; only what a rule would get wrong is written out.
"""

GROUPS = {
    "animate": "person pet wild",
    "thing": "object clothes vessel furniture vehicle book press",
    "text": "book press",
    "place": "inside at on water",
    "meal": "food mass",
}
"""Names for several classes at once."""

NOUNS = {
    "person": "man/men homme m, woman/women femme f, boy garçon m, girl fille f, child/children enfant m,"
    " prince prince m, king roi m, queen reine f, princess princesse f, soldier soldat m,"
    " sailor marin m, tourist touriste m",
    "person skilled": "nurse infirmière f, farmer fermier m, baker boulanger m, painter peintre m,"
    " singer chanteuse f, actor acteur m, writer écrivain m, waiter serveur m, engineer ingénieur m",
    "person skilled own": "teacher professeur m, doctor médecin m, student étudiant m, friend ami m, lawyer avocat m",
    "person own": "brother frère m, sister sœur f, uncle oncle m, aunt tante f, cousin cousin m, neighbour voisin m,"
    " son fils/fils m",
    "person own parent": "father père m, mother mère f",
    "pet": "cat chat m, dog chien m, horse cheval/chevaux m, cow vache f, rabbit lapin m, goat chèvre f, hen poule f,"
    " donkey âne m, lamb agneau m, duck canard m",
    "wild": "mouse/mice souris f, wolf/wolves loup m, bear ours m, fox renard m, monkey singe m, turtle tortue f,"
    " frog grenouille f, lion lion m, elephant éléphant m",
    "wild bird": "bird oiseau m, owl hibou/hiboux m",
    "book writing": "book livre m, letter lettre f, story histoire f, poem poème m",
    "press": "newspaper journal/journaux m, magazine magazine m",
    "clothes": "hat chapeau m, shirt chemise f, shoe chaussure f, jacket veste f",
    "clothes long": "coat manteau m, dress robe f, skirt jupe f, scarf/scarves écharpe f",
    "vessel": "glass verre m, cup tasse f, plate assiette f, bowl bol m, spoon cuillère f, knife/knives couteau m",
    "vessel open": "bottle bouteille f",
    "object": "key clé f, pen stylo m, pencil crayon m, ring bague f, map carte f, jewel bijou/bijoux m,"
    " ball ballon m, basket panier m, flower fleur f",
    "object open": "bag sac m, box boîte f, umbrella parapluie m, gift cadeau m",
    "object machine": "lamp lampe f, clock horloge f, phone téléphone m, computer ordinateur m, toy jouet m",
    "object art": "painting tableau m, photo photo f",
    "opening open": "door porte f, window fenêtre f",
    "furniture": "table table f, chair chaise f, bed lit m, sofa canapé m, desk bureau m, cupboard armoire f",
    "vehicle machine": "car voiture f, bicycle vélo m, truck camion m, boat bateau m",
    "vehicle machine public": "bus bus m, train train m, plane avion m",
    "instrument": "piano piano m, guitar guitare f, violin violon m, flute flûte f, trumpet trompette f",
    "food": "apple pomme f, orange orange f, pear poire f, cake gâteau m, egg œuf m, tomato tomate f, carrot carotte f,"
    " strawberry fraise f, lemon citron m, mushroom champignon m, sandwich sandwich m, pie tarte f",
    "mass": "bread pain m, cheese fromage m, rice riz m, meat viande f, soup soupe f, honey miel m,"
    " chocolate chocolat m, jam confiture f, salad salade f",
    "drink": "water eau f, milk lait m, coffee café m, tea thé m, wine vin m, beer bière f, lemonade limonade f",
    "inside goal": "park parc m",
    "inside goal home": "garden jardin m, village village m",
    "inside": "forest forêt f, street rue f",
    "inside home": "field champ m, kitchen cuisine f",
    "inside building home": "house maison f",
    "inside building": "shop magasin m",
    "inside goal building": "church église f, castle château m",
    "at goal building": "station gare f, hotel hôtel m, hospital hôpital/hôpitaux m,"
    " museum musée m, restaurant restaurant m, theatre théâtre m, bakery boulangerie f, library bibliothèque f",
    "at goal building home": "school école f, university université f",
    "at goal": "market marché m, airport aéroport m",
    "on goal": "beach plage f, island île f",
    "on": "bridge pont m",
    "water": "lake lac m, river rivière f, sea mer f",
}
"""Classes -> "english[/plural] french[/plural] gender"."""

NAMES = "Paul m, Thomas m, Marie f, Anna f, Sophie f, Lucas m"

ADJECTIVES = {
    "before animate thing place food": "small petit petite",
    "before pet wild thing inside at on": "big grand grande",
    "before animate thing building": "old vieux vieille vieil",
    "before thing building": "new nouveau nouvelle nouvel",
    "before animate": "young jeune jeune",
    "before animate thing place": "beautiful beau belle bel",
    "before skilled meal drink text": "good bon bonne, bad mauvais mauvaise",
    "before object clothes vessel inside on water": "pretty joli jolie",
    "before writing long": "long long longue",
    "colour pet object clothes vessel furniture vehicle opening": "white blanc blanche, black noir noire",
    "colour wild clothes furniture": "brown brun brune, grey gris grise",
    "colour object clothes vessel furniture vehicle opening": "red rouge rouge, blue bleu bleue, green vert verte,"
    " yellow jaune jaune",
    "origin skilled text vehicle food": "French français française, English anglais anglaise,"
    " Italian italien italienne, Spanish espagnol espagnole",
    "state animate": "tired fatigué fatiguée, sick malade malade, sad triste triste, calm calme calme,"
    " nervous nerveux nerveuse",
    "state person": "happy heureux heureuse, proud fier fière, jealous jaloux jalouse",
    "trait person": "serious sérieux sérieuse, patient patient patiente, rich riche riche,"
    " poor pauvre pauvre, kind gentil gentille, polite poli polie, famous célèbre célèbre, elegant élégant élégante",
    "trait animate": "intelligent intelligent intelligente, curious curieux curieuse, lazy paresseux paresseuse",
    "trait pet wild": "strong fort forte, dangerous dangereux dangereuse",
    "trait object vessel furniture": "heavy lourd lourde, light léger légère",
    "trait thing": "expensive cher chère",
    "trait object clothes building": "strange étrange étrange, magnificent magnifique magnifique",
    "trait vessel clothes furniture vehicle": "clean propre propre, dirty sale sale",
    "trait text": "interesting intéressant intéressante, difficult difficile difficile",
    "trait meal drink": "delicious délicieux délicieuse",
    "trait drink": "cold froid froide",
    "trait food": "fresh frais fraîche",
    "trait building machine": "modern moderne moderne",
    "trait inside on": "quiet tranquille tranquille",
}
"""Kind and classes -> "english masculine feminine [masculine before a vowel]"."""

COMPARATIVES = {
    "small": "smaller", "big": "bigger", "old": "older", "young": "younger", "strong": "stronger", "heavy": "heavier",
    "rich": "richer", "long": "longer",
}  # fmt: skip
WITH_MORE = (
    "beautiful intelligent curious expensive famous elegant difficult interesting modern dangerous delicious"
    " patient serious tired polite nervous"
)

VERBS = """
eat          ate          manger      .  person      meal
drink        drank        boire       .  person      drink
read         .            lire        .  person      text
write        wrote        écrire      .  person      writing
see          saw          voir        i  animate     person,pet,wild,thing,building
watch        watched      observer    .  animate     person,pet,wild
look+at      looked       regarder    .  person      object,clothes,art,vehicle,building
look+for     looked       chercher    .  person      person,pet,object,clothes,text,vehicle
find         found        trouver     i  person      object,clothes,text,pet
lose         lost         perdre      i  person      object,clothes
hide         hid          cacher      .  person      object,food,writing
buy          bought       acheter     .  person      meal,drink,thing
sell         sold         vendre      .  person      meal,thing
choose       chose        choisir     .  person      food,clothes,object,text,furniture
wear         wore         porter      .  person      clothes
wash         washed       laver       .  person      clothes,vessel,vehicle,pet
break        broke        casser      i  person      vessel,machine
open         opened       ouvrir      .  person      open
close        closed       fermer      .  person      open
draw         drew         dessiner    .  person      pet,wild,building,object
prepare      prepared     préparer    .  person      meal
bring        brought      apporter    .  person      meal,object,text
take         took         prendre     i  person      object,text,vessel
give         gave         donner      d  person      food,object,text,clothes
show         showed       montrer     d  person      object,text,clothes,vehicle
send         sent         envoyer     d  person      writing,object
hear         heard        entendre    i  animate     person,pet,wild,vehicle
listen+to    listened     écouter     .  person      person,bird
wait+for     waited       attendre    .  person      person,public
know         knew         connaître   s  person      person,building
meet         met          rencontrer  i  person      person
help         helped       aider       .  person      person
call         called       appeler     .  person      person
follow       followed     suivre      .  animate     person,pet,wild
love         loved        adorer      g  person      person,pet,meal,drink
like         liked        aimer       g  person      person,pet,meal,drink,text
hate         hated        détester    g  person      meal,drink
have         had          avoir       s  person      pet,thing
visit        visited      visiter     .  person      building,goal
leave        left         quitter     i  person      building,goal
repair       repaired     réparer     .  person      machine,furniture
finish       finished     finir       .  person      text,food
admire       admired      admirer     .  person      art,building,person,clothes
"""
"""English, its past ("." when it looks like the present), French, kind, subjects, objects.

Kind: s = a state (no progressive, its past is the imparfait); i = no progressive, passé composé; g = a state
whose object may be a whole kind ("likes bread"); d = always "to someone";
"." = anything goes. A "+" joins the verb with its preposition.
"""

INTRANSITIVE = """
sleep        slept        dormir      .  animate
work         worked       travailler  .  person
sing         sang         chanter     .  person,bird
dance        danced       danser      .  person
run          ran          courir      .  animate
swim         swam         nager       w  animate
cry          cried        pleurer     .  person
smile        smiled       sourire     .  person
talk         talked       parler      .  person
walk         walked       marcher     .  animate
dream        dreamed      rêver       .  animate
wait         waited       attendre    .  animate
stay         stayed       rester      p  animate
fall         fell         tomber      i  animate
leave        left         partir      n  person
"""
"""The same columns; kind p = always says where, n = never does, w = in water."""

MOTION = """
go           went         aller       .  person      to/à:goal
come         came         venir       .  person      from/de:goal
come+back    came         revenir     .  person      from/de:goal
arrive       arrived      arriver     .  person      at/à:at
play         played       jouer       .  person      /de:instrument
"""
"""The same columns, then the preposition in each language and the class that follows it."""

OPINIONS = """
think        thought      penser      s  person
know         knew         savoir      s  person
say          said         dire        s  person
believe      believed     croire      s  person
"""
"""Verbs that take "that" and a clause."""

RELATIVE = frozenset({"buy", "find", "choose", "lose", "write", "sell", "prepare", "visit"})
"""Verbs of "the letter that he wrote"."""

LOCATED = frozenset(
    {"eat", "drink", "read", "write", "see", "watch", "look", "find", "lose", "hide", "buy", "sell", "wash", "draw"}
    | {"prepare", "hear", "wait", "meet", "call", "follow"}
)
"""Verbs with an object that may also say where."""

CHAIN_FIRST = "buy take find choose prepare"
CHAIN_THEN = "eat drink wear wash sell hide repair"
"""Verbs that may share an object: "takes the apple and eats it"."""

PLACES = {
    "inside": "in/dans",
    "at": "at/à",
    "on": "on/sur",
    "furniture": "on/sur under/sous near/près+de",
    "building": "near/près+de in+front+of/devant behind/derrière next+to/à+côté+de",
    "water": "near/près+de",
    "swimming": "in/dans",
}
"""Class -> the prepositions that suit it, "english/french"."""

TIMES = {
    "present": "every1+day2/tous1+les1+jours2 in1+the1+morning2/le1+matin2 in1+the1+evening2/le1+soir2",
    "progressive": "now/maintenant",
    "past": "yesterday/hier last1+week2/la2+semaine2+dernière1 this1+morning2/ce1+matin2"
    " last1+year2/l'2+année2+dernière1",
    "was": "this1+morning2/ce1+matin2",
    "future": "tomorrow/demain next1+week2/la2+semaine2+prochaine1 soon/bientôt",
    "going": "tomorrow/demain today/aujourd'+hui",
}
"""Tense -> when. Words with the same digit are linked; without digits, every word is linked with every other."""

FREQUENCY = "often/souvent always/toujours sometimes/parfois rarely/rarement"
QUANTITIES = "many/beaucoup+de two/deux three/trois four/quatre five/cinq ten/dix several/plusieurs"
ASPIRATED = frozenset({"hibou", "hiboux"})
"""An h that forbids elision."""
