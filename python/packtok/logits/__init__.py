"""Computes teacher signals: a model's predictions for samples, stored for training by distillation.

Needs the extra ``logits``. `teacher_signals` computes a part, `merge_parts` makes one folder of all parts.
"""
