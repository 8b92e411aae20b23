"""Styles: how a plan is written as source."""
