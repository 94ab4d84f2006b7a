"""Counts words."""


def count(text):
    """Returns how often each word occurs."""
    words = {}
    for word in text.split():
        words[word] = words.get(word, 0) + 1
    return words
