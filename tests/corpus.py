"""Sentences to translate: the corpora where they lie beside the repository, else our own."""

import os
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
DATA = Path(os.environ.get("TEST_DATA", ROOT.parent / "shared" / "data"))
TATOEBA = DATA / "tatoeba-eng-fra"

needs_tatoeba = pytest.mark.skipif(
    not TATOEBA.is_dir(), reason=f"needs the corpus in {TATOEBA}; TEST_DATA names another place"
)

# Short and long, questions and orders, names, numbers and odd characters.
SENTENCES = (
    "Go.",
    "I lost.",
    "I'm home.",
    "He's calm.",
    "Where is the station?",
    "Please close the window before you leave the house.",
    "She told me that she had never seen such a beautiful garden in her whole life.",
    "We paid 27 euros for two tickets, and then the train was late.",
    "Don't touch that!",
    "My brother, who lives in Berlin, is going to visit us next summer.",
    "Is there anything else that I can do for you?",
    "It was raining so hard that we couldn't see the road.",
    "Tom and Mary haven't spoken to each other since 2013.",
    "If I had known that you were ill, I would have called you at once.",
    "The café on the corner is naïvely named “Déjà vu”.",
    "No one knows why the old clock in the tower stopped.",
    "Can you lend me your umbrella?",
    "I think, therefore I am 🙂.",
    "Nobody was surprised.",
    "The children are playing football in the park behind the school with their new friends.",
    "HELLO!",
    "He asked whether the meeting had been cancelled, but nobody answered him.",
    "Two coffees and a glass of water, please.",
    "This is the first time that I have ever eaten snails.",
)
FRENCH_SENTENCES = (
    "Va !",
    "J'ai perdu.",
    "Où est la gare ?",
    "Ferme la fenêtre avant de sortir, s'il te plaît.",
    "Elle m'a dit qu'elle n'avait jamais vu un aussi beau jardin de toute sa vie.",
    "Nous avons payé 27 euros pour deux billets, puis le train était en retard.",
    "Mon frère, qui vit à Berlin, va nous rendre visite l'été prochain.",
    "Il pleuvait si fort que nous ne pouvions pas voir la route.",
    "Si j'avais su que tu étais malade, je t'aurais appelé tout de suite.",
    "Qu'est-ce que c'est que « Déjà vu » ?",
    "BONJOUR !",
    "Les enfants jouent au football dans le parc derrière l'école 🙂.",
)
SENTENCES_IN = {"en": SENTENCES, "fr": FRENCH_SENTENCES}
