from slugs import Slugger


def test_numbers_are_added():
    slugger = Slugger()
    assert [slugger("News") for _ in range(3)] == ["news", "news-2", "news-3"]


def test_different_titles_stay():
    slugger = Slugger(separator="_")
    assert [slugger("Old news"), slugger("News")] == ["old_news", "news"]
