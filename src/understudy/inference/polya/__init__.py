"""Polya trees and urns: distributions over a line."""
