"""Private decision trees and forests in the manner of scikit-learn; they learn through the curator alone."""
