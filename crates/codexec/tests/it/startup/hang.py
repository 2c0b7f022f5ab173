"""Reads nothing, answers nothing."""

import time

time.sleep(3600)
