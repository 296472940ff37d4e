"""What the documentation shows is what the service does."""

from docs.make_examples import MODELS, PAGE, with_examples
from service.client.local import LocalClient


def test_the_examples_of_the_text_page_are_what_the_model_says() -> None:
    with LocalClient(MODELS) as client:
        page = PAGE.read_text()
        assert with_examples(page, client) == page, "run: python docs/make_examples.py"
