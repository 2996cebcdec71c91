"""Define the tasks of the demonstration data: questions, answers and drawings (see ``make_megabench_demo.py``)."""

from __future__ import annotations

from make_megabench_demo import DemoTask, Query, Shape, badge, bars, clip, row_of, scene, words

TOWER_DOMAIN = """(define (domain tower)
(:requirements :strips)
(:predicates (clear ?x) (on-table ?x) (on ?x ?y))
(:action stack
 :parameters (?x ?y)
 :precondition (and (clear ?x) (clear ?y) (on-table ?x))
 :effect (and (not (clear ?y)) (not (on-table ?x)) (on ?x ?y)))
(:action unstack
 :parameters (?x ?y)
 :precondition (and (clear ?x) (on ?x ?y))
 :effect (and (not (on ?x ?y)) (clear ?y) (on-table ?x)))
)"""


def tower_problem(start: str, goal: str) -> str:
    return (
        f"(define (problem small)\n(:domain tower)\n(:objects red blue green)\n(:init {start})\n(:goal (and {goal})))"
    )


def tower(start: str, goal: str, plan: str) -> dict[str, str]:
    return {"domain_pddl": TOWER_DOMAIN, "task_pddl": tower_problem(start, goal), "gt_plan": plan}


STRINGS = [
    DemoTask(
        "demo_count_circles", "Count the circles in the picture. Reply with a whole number.",
        {"count": "positive_int_match"},
        [
            Query("How many circles are there?", {"count": "2"},
                  {"1.png": row_of(("circle", "red"), ("square", "blue"), ("circle", "green"))}),
            Query("How many circles are there?", {"count": "4"}, {"2.jpg": row_of(*[("circle", "orange")] * 4)}),
        ],
        Query("How many circles are there?", {"count": "1"},
              {"example.png": row_of(("square", "red"), ("circle", "blue"))}),
        output_format="numerical_data",
    ),
    DemoTask(
        "demo_name_colour", "Name the colour of the shape that the question asks for.", {"colour": "simple_str_match"},
        [
            Query("What colour is the triangle?", {"colour": "green"},
                  {"1.png": row_of(("square", "red"), ("triangle", "green"))}),
            Query("What colour is the square?", {"colour": "yellow"},
                  {"2.jpg": row_of(("circle", "black"), ("square", "yellow"))}),
        ],
        Query("What colour is the circle?", {"colour": "blue"}, {"example.png": row_of(("circle", "blue"))}),
    ),
    DemoTask(
        "demo_pick_letter", "Choose the option that fits the picture. Reply with its letter.",
        {"letter": "exact_str_match"},
        [
            Query("What lies in the middle? (A) a circle (B) a square (C) a triangle", {"letter": "B"},
                  {"1.png": row_of(("circle", "red"), ("square", "red"), ("triangle", "red"))}),
            Query("Which shape is first? (A) a circle (B) a square (C) a triangle", {"letter": "C"},
                  {"2.png": row_of(("triangle", "blue"), ("circle", "blue"))}),
        ],
        output_format="multiple_choice",
    ),
    DemoTask(
        "demo_read_sign", "Copy the text of the sign.", {"text": "near_str_match"},
        [
            Query("What is written here?", {"text": "Open until noon"}, {"1.png": words("Open until noon")}),
            Query("What is written here?", {"text": "Wet paint"}, {"2.png": words("Wet paint")}),
        ],
        Query("What is written here?", {"text": "Mind the step"}, {"example.png": words("Mind the step")}),
        input_format="Text-Based Images and Documents",
    ),
    DemoTask(
        "demo_name_badge", "The badge is drawn on a transparent ground. Name the shape that is cut out of it.",
        {"shape": "multi_ref_phrase"},
        [
            Query("Which shape is cut out?", {"shape": "['square', 'rectangle', 'box']"},
                  {"1.png": badge("blue", "square")}),
            Query("Which shape is cut out?", {"shape": "['circle', 'disc', 'round hole']"},
                  {"2.png": badge("orange", "circle")}),
        ],
        output_format="open_ended_output",
    ),
]  # fmt: skip

NUMBERS = [
    DemoTask(
        "demo_bar_ratio", "Read the bar chart. Reply with a number.", {"ratio": "number_rel_diff_ratio"},
        [
            Query("How many times as high as the red bar is the blue bar?", {"ratio": "2"},
                  {"1.png": bars(red=0.4, blue=0.8)}),
            Query("How many times as high as the blue bar is the green bar?", {"ratio": "1.5"},
                  {"2.png": bars(red=0.2, blue=0.4, green=0.6)}),
        ],
        output_format="numerical_data",
    ),
    DemoTask(
        "demo_bar_share", "The picture is 1 high. Reply with the height of the bar, between 0 and 1.",
        {"height": "normalized_rmse"},
        [
            Query("How high is the black bar?", {"height": "0.75"}, {"1.png": bars(black=0.75)}),
            Query("How high is the orange bar?", {"height": "0.3"}, {"2.jpg": bars(green=0.9, orange=0.3)}),
        ],
        Query("How high is the red bar?", {"height": "0.5"}, {"example.png": bars(red=0.5)}),
        output_format="numerical_data",
    ),
    DemoTask(
        "demo_sum_on_card", "Work out what is on the card.", {"value": "general_single_numerical_match"},
        [
            Query("What is the result?", {"value": "42"}, {"1.png": words("6 x 7")}),
            Query("What is the result?", {"value": "2.5"}, {"2.png": words("5 / 2")}),
        ],
        output_format="numerical_data", input_format="Text-Based Images and Documents",
    ),
    DemoTask(
        "demo_expand_formula", "Give an expression in LaTeX that equals the one on the card.",
        {"formula": "latex_expr_equality"},
        [
            Query("Expand the product.", {"formula": "x^{2}+2x+1"}, {"1.png": words("(x+1)(x+1)")}),
            Query("Expand the product.", {"formula": "x^{2}-4"}, {"2.png": words("(x+2)(x-2)")}),
        ],
    ),
    DemoTask(
        "demo_corner_angles", "Give the three inner angles of the triangle in degrees, separated by commas, smallest "
        "first.", {"angles": "angle_seq_float_rmse"},
        [
            Query("The triangle has a right angle and two equal sides.", {"angles": "45,45,90"},
                  {"1.png": scene(Shape("triangle", "blue", (0.1, 0.3, 0.9, 0.9)))}),
            Query("All three sides are equal.", {"angles": "60,60,60"},
                  {"2.png": scene(Shape("triangle", "green", (0.25, 0.13, 0.75, 0.78)))}),
        ],
        output_format="contextual_formatted_text",
    ),
]  # fmt: skip

LISTS = [
    DemoTask(
        "demo_colour_set", "List all colours in the picture, separated by commas, in any order.",
        {"colours": "str_set_equality_comma"},
        [
            Query("Which colours are there?", {"colours": "red, blue, green"},
                  {"1.png": row_of(("circle", "blue"), ("square", "green"), ("circle", "red"))}),
            Query("Which colours are there?", {"colours": "black, yellow"},
                  {"2.png": row_of(("circle", "black"), ("circle", "yellow"), ("square", "black"))}),
        ],
        output_format="structured_output",
    ),
    DemoTask(
        "demo_left_to_right", "Name the shapes from left to right as a list of words.", {"order": "sequence_equality"},
        [
            Query("In which order do they stand?", {"order": "['square', 'circle', 'triangle']"},
                  {"1.png": row_of(("square", "red"), ("circle", "red"), ("triangle", "red"))}),
            Query("In which order do they stand?", {"order": "['triangle', 'triangle', 'square']"},
                  {"2.png": row_of(("triangle", "blue"), ("triangle", "red"), ("square", "red"))}),
        ],
        Query("In which order do they stand?", {"order": "['circle', 'square']"},
              {"example.png": row_of(("circle", "green"), ("square", "green"))}),
        output_format="structured_output",
    ),
    DemoTask(
        "demo_order_of_pictures", "The pictures show the height of a plant. Number them as they lie in time.",
        {"order": "sequence_accuracy_case_insensitive"},
        [
            Query("Give the numbers of the pictures, youngest plant first.", {"order": "[2, 3, 1]"},
                  {"1a.png": bars(green=0.9), "1b.png": bars(green=0.2), "1c.png": bars(green=0.5)}),
            Query("Give the numbers of the pictures, oldest plant first.", {"order": "[1, 2]"},
                  {"2a.png": bars(green=0.8), "2b.png": bars(green=0.4)}),
        ],
        output_format="structured_output", input_format="Photographs",
    ),
    DemoTask(
        "demo_inventory", "Count the shapes by kind. Reply with a dictionary from the name of the kind to its number.",
        {"inventory": "dict_equality"},
        [
            Query("What is there?", {"inventory": "{'circle': 2, 'square': 1}"},
                  {"1.png": row_of(("circle", "red"), ("square", "red"), ("circle", "blue"))}),
            Query("What is there?", {"inventory": "{'triangle': 3}"}, {"2.png": row_of(*[("triangle", "black")] * 3)}),
        ],
        output_format="structured_output",
    ),
    DemoTask(
        "demo_small_crossword", "Fill in the two words of the grid that the legend describes.",
        {"across": "dict_exact_str_match_agg_recall", "down": "dict_exact_str_match_agg_recall"},
        [
            Query("1 across: opposite of dry. 1 down: opposite of lose.",
                  {"across": {"1": "WET"}, "down": {"1": "WIN"}}, {}),
            Query("1 across: a pet that barks. 1 down: the reverse of night.",
                  {"across": {"1": "DOG"}, "down": {"1": "DAY"}}, {}),
        ],
        parser="json", output_format="structured_output",
        shared={"grid.png": scene(Shape("square", "black", (0.4, 0.4, 0.6, 0.6)),
                                  Shape("square", "black", (0.7, 0.7, 0.9, 0.9)))},
    ),
]  # fmt: skip

PLACES = [
    DemoTask(
        "demo_find_squares", "Count the squares and give their boxes as (left, top, right, bottom), each a share of "
        "the picture's width or height.", {"count": "exact_str_match", "boxes": "nbbox_iou_tuple"},
        [
            Query("Where are the squares?", {"count": "2", "boxes": "[(0.1, 0.1, 0.3, 0.4), (0.6, 0.5, 0.9, 0.9)]"},
                  {"1.png": scene(Shape("square", "red", (0.1, 0.1, 0.3, 0.4)),
                                  Shape("square", "blue", (0.6, 0.5, 0.9, 0.9)))}),
            Query("Where are the squares?", {"count": "1", "boxes": "[(0.2, 0.25, 0.7, 0.75)]"},
                  {"2.png": scene(Shape("square", "green", (0.2, 0.25, 0.7, 0.75)))}),
        ],
        parser="json", output_format="structured_output", weights={"count": 1, "boxes": 2},
    ),
    DemoTask(
        "demo_box_of_circle", "Give the box of the circle as (left, top, right, bottom) in shares of the picture.",
        {"box": "nbbox_iou_single"},
        [
            Query("Where is the circle?", {"box": "(0.25, 0.25, 0.75, 0.75)"},
                  {"1.png": scene(Shape("circle", "red", (0.25, 0.25, 0.75, 0.75)))}),
            Query("Where is the circle?", {"box": "(0.5, 0.1, 0.9, 0.6)"},
                  {"2.png": scene(Shape("circle", "blue", (0.5, 0.1, 0.9, 0.6)))}),
        ],
        output_format="contextual_formatted_text",
    ),
    DemoTask(
        "demo_press_button", "The picture is a screen. Reply with the point to press as <point>x, y</point>, in shares "
        "of its width and height.", {"point": "xml_norm_point_in_bbox"},
        [
            Query("Press the green button.", {"point": "<point>0.8, 0.8</point>"},
                  {"1.png": scene(Shape("square", "green", (0.7, 0.7, 0.9, 0.9)),
                                  Shape("square", "red", (0.1, 0.7, 0.3, 0.9)))},
                  {"bounding_boxes": ["(0.7, 0.7, 0.9, 0.9)"]}),
            Query("Press either of the blue buttons.", {"point": "<point>0.2, 0.2</point>"},
                  {"2.png": scene(Shape("square", "blue", (0.1, 0.1, 0.3, 0.3)),
                                  Shape("square", "blue", (0.6, 0.1, 0.8, 0.3)))},
                  {"bounding_boxes": ["(0.1, 0.1, 0.3, 0.3)", "(0.6, 0.1, 0.8, 0.3)"]}),
        ],
        output_format="contextual_formatted_text", input_format="User Interface Screenshots",
    ),
    DemoTask(
        "demo_swipe", "The picture is a screen with an arrow of dots that grow. Say along which axis and to which side "
        "to swipe; both must be right.",
        {"axis": "exact_str_match_case_insensitive", "side": "exact_str_match_case_insensitive"},
        [
            Query("Follow the growing dots.", {"axis": "horizontal", "side": "right"},
                  {"1.png": scene(Shape("circle", "black", (0.1, 0.45, 0.15, 0.55)),
                                  Shape("circle", "black", (0.4, 0.4, 0.5, 0.6)),
                                  Shape("circle", "black", (0.7, 0.3, 0.9, 0.7)))}),
            Query("Follow the growing dots.", {"axis": "vertical", "side": "up"},
                  {"2.png": scene(Shape("circle", "black", (0.47, 0.85, 0.53, 0.95)),
                                  Shape("circle", "black", (0.44, 0.5, 0.56, 0.7)),
                                  Shape("circle", "black", (0.4, 0.05, 0.6, 0.35)))}),
        ],
        parser="json", aggregation="min", output_format="structured_output",
        input_format="User Interface Screenshots",
    ),
    DemoTask(
        "demo_block_tower", "Blocks lie on a table or on each other. The actions are (stack X Y) and (unstack X Y). "
        "Reply with a plan, one action a line, that reaches the goal.", {"plan": "symbolic_planning_test"},
        [
            Query("Build a tower of red on blue.", {"plan": "(stack red blue)"},
                  {"1.png": row_of(("square", "red"), ("square", "blue"))},
                  tower("(clear red) (clear blue) (on-table red) (on-table blue)", "(on red blue)",
                        "(stack red blue)")),
            Query("Red lies on blue. Build a tower of blue on green.",
                  {"plan": "(unstack red blue)\n(stack blue green)"},
                  {"2.png": scene(Shape("square", "blue", (0.1, 0.5, 0.3, 0.9)),
                                  Shape("square", "red", (0.1, 0.1, 0.3, 0.5)),
                                  Shape("square", "green", (0.6, 0.5, 0.8, 0.9)))},
                  tower("(clear red) (on red blue) (on-table blue) (clear green) (on-table green)", "(on blue green)",
                        "(unstack red blue)\n(stack blue green)")),
        ],
        output_format="structured_output",
    ),
]  # fmt: skip

VIDEOS = [
    DemoTask(
        "demo_dot_in_video", "Watch the dot in the clip.", {"answer": "exact_str_match"},
        [
            Query("Which way does it go, left or right?", {"answer": "right"}, {"1.mp4": clip("red", True)}),
            Query("Is it red or blue?", {"answer": "red"}, {"1.mp4": clip("red", True)}),
        ],
        input_format="Videos",
    ),
    DemoTask(
        "demo_picture_and_clip", "First a picture is shown, then a clip.", {"answer": "exact_str_match"},
        [
            Query("Does the clip start as in the picture? Answer yes or no.", {"answer": "yes"},
                  {"1.png": scene(Shape("circle", "blue", (0.8, 0.35, 1.0, 0.65))), "1.mp4": clip("blue", False)}),
        ],
        input_format="Videos",
    ),
]  # fmt: skip

SIMPLE = [
    DemoTask(
        "demo_name_shape", "Name the kind of one shape: circle, square or triangle.", {"shape": "simple_str_match"},
        [
            Query("What kind of shape is the red one?", {"shape": "triangle"},
                  {"1.png": row_of(("circle", "blue"), ("triangle", "red"), ("square", "orange"))}),
            Query("What kind of shape is the black one?", {"shape": "circle"},
                  {"2.png": row_of(("square", "green"), ("circle", "black"))}),
            Query("What kind of shape is the yellow one?", {"shape": "square"},
                  {"3.jpg": row_of(("square", "yellow"), ("triangle", "blue"), ("circle", "red"))}),
            Query("What kind of shape is the green one?", {"shape": "triangle"},
                  {"4.png": row_of(("circle", "orange"), ("square", "black"), ("triangle", "green"))}),
        ],
    ),
    DemoTask(
        "demo_count_colour", "Count the shapes of one colour. Reply with a whole number.",
        {"count": "positive_int_match"},
        [
            Query("How many shapes are blue?", {"count": "2"},
                  {"1.png": row_of(("circle", "blue"), ("circle", "red"), ("square", "blue"))}),
            Query("How many shapes are red?", {"count": "1"},
                  {"2.png": row_of(("triangle", "green"), ("triangle", "red"), ("circle", "green"))}),
            Query("How many shapes are orange?", {"count": "3"},
                  {"3.jpg": row_of(("square", "orange"), ("triangle", "orange"), ("circle", "black"),
                                   ("square", "orange"))}),
            Query("How many shapes are green?", {"count": "4"}, {"4.png": row_of(*[("triangle", "green")] * 4)}),
        ],
        output_format="numerical_data",
    ),
    DemoTask(
        "demo_which_side", "Two shapes are drawn. Say where one lies as seen from the other: left, right, above or "
        "below.", {"side": "exact_str_match"},
        [
            Query("Where is the circle, as seen from the square?", {"side": "left"},
                  {"1.png": scene(Shape("circle", "red", (0.1, 0.35, 0.3, 0.65)),
                                  Shape("square", "blue", (0.6, 0.3, 0.85, 0.7)))}),
            Query("Where is the triangle, as seen from the circle?", {"side": "above"},
                  {"2.png": scene(Shape("triangle", "green", (0.35, 0.05, 0.6, 0.4)),
                                  Shape("circle", "orange", (0.4, 0.6, 0.6, 0.95)))}),
            Query("Where is the square, as seen from the triangle?", {"side": "right"},
                  {"3.png": scene(Shape("triangle", "black", (0.05, 0.5, 0.3, 0.85)),
                                  Shape("square", "yellow", (0.65, 0.5, 0.9, 0.9)))}),
            Query("Where is the square, as seen from the circle?", {"side": "below"},
                  {"4.png": scene(Shape("circle", "blue", (0.7, 0.1, 0.9, 0.4)),
                                  Shape("square", "red", (0.65, 0.6, 0.85, 0.9)))}),
        ],
        output_format="multiple_choice",
    ),
    DemoTask(
        "demo_read_word", "Read the word on the card.", {"word": "exact_str_match_case_insensitive"},
        [
            Query("Which word is it?", {"word": "gate"}, {"1.png": words("gate")}),
            Query("Which word is it?", {"word": "milk"}, {"2.png": words("milk")}),
            Query("Which word is it?", {"word": "stairs"}, {"3.png": words("stairs")}),
            Query("Which word is it?", {"word": "north"}, {"4.jpg": words("north")}),
        ],
        input_format="Text-Based Images and Documents",
    ),
]  # fmt: skip

TASKS = [*STRINGS, *NUMBERS, *LISTS, *PLACES, *VIDEOS, *SIMPLE]
