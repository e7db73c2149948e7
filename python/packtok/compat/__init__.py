"""Classes and functions under the names and signatures of other projects."""
