"""Tags as a pipeline gives them, for the tests of what is written of them."""


def make_tag(ui, name, score, *numbers):
    return {"ui": ui, "name": name, "score": score, "tree_numbers": list(numbers)}


HYPERTENSION = make_tag("D006973", "Hypertension", 0.91234, "C14.907.489")
AMLODIPINE = make_tag("D017311", "Amlodipine", 0.8, "D03.383")
WOUNDS = make_tag("D014947", "Wounds and Injuries", 0.6, "C26")
HUMANS = make_tag("D006801", "Humans", 0.99, "B01.050")
FEMALE = make_tag("D005260", "Female", 0.95)
TAGS = [HUMANS, HYPERTENSION, AMLODIPINE]
